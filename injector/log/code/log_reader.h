/* Reads a dump into a code_log.
 */
#ifndef PERFJIT_LOG_READER_H
#define PERFJIT_LOG_READER_H

#include "injector/log/code/code_log.h"
#include "injector/log/jitdump/jit_dump.h"

/* Add the contents of DUMP, number DUMP_INDEX of its process.  Records about source lines are left
 * alone unless WITH_LINES.  Unusable records are reported to FINDINGS.  Returns 0, or -1 without
 * memory, with the failure text set. */
int code_log_read(struct code_log *log, const struct jit_dump *dump, uint32_t dump_index,
                  const struct jit_clock *clock, bool with_lines, struct findings *findings);

#endif
