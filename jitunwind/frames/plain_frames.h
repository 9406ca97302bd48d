/* Call frame information of the plain kind, made of rows: for a debugger, which wants an FDE for
 * each function and looks its frames up by itself. */
#ifndef JITUNWIND_PLAIN_FRAMES_H
#define JITUNWIND_PLAIN_FRAMES_H

#include "jitdump/format/byte_sink.h"
#include "jitunwind/frames/function_table.h"

/* How many bytes the CIE takes, and the FDEs of a function with ROW_COUNT rows at most. */
enum { PLAIN_CIE_BYTES = 24 };
size_t ju_plain_frames_most(uint32_t row_count);

/* Put the CIE that all FDEs share, at the section's begin. */
void ju_plain_cie_put(struct byte_sink *section);

/* Put FDEs for the BYTES at START, as far as ROWS say how their frames are unwound.  SECTION begins
 * with the CIE. */
void ju_plain_frames_put(struct byte_sink *section, uint64_t start, uint32_t bytes,
                         const struct table_row_draft *rows, uint32_t row_count);

/* Have the FDEs in the COUNT bytes at FRAMES be about nothing. */
void ju_plain_frames_bury(uint8_t *frames, size_t count);

/* Say in the FDEs in the COUNT bytes at FRAMES that they stand at OFFSET of their section. */
void ju_plain_frames_place(uint8_t *frames, size_t count, size_t offset);

#endif
