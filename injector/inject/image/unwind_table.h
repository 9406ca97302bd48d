/* The unwind tables of an image: .eh_frame_hdr and .eh_frame for all its functions, made anew.
 *
 *     addr             .eh_frame_hdr, its table sorted and complete
 *     addr + hdr_bytes .eh_frame: CIEs, shared by all FDEs that can; FDEs by address; end mark
 *
 * The header stands first because libdw uses it as a search table only then; addresses and file
 * offsets differ by the image's base, as everywhere in it.
 */
#ifndef PERFJIT_UNWIND_TABLE_H
#define PERFJIT_UNWIND_TABLE_H

#include "injector/inject/layout/image_plan.h"

/* Decide how large the tables of each image of process PROCESS_INDEX are and where they stand: set
 * its tables_start and the sizes.  In a process that logged no unwind tables there are none.  If
 * some functions have tables, an image of functions without tables gets an empty table.  perf 6.1
 * with libunwind gives up at a file without .eh_frame.  With an empty table it goes on by frame
 * pointers.  A runtime that writes empty tables (V8) wants exactly that.  Returns 0, or -1 with the
 * failure text set. */
int unwind_tables_place(struct image_plan *plan, const struct jit_process *processes,
                        uint32_t process_index, struct findings *findings);

/* Fill the hdr_bytes + eh_frame_bytes at BYTES with the tables of IMAGE.  Returns 0, or -1 without
 * memory. */
int unwind_table_fill(const struct jit_image *image, const struct jit_process *process,
                      uint8_t *bytes);

#endif
