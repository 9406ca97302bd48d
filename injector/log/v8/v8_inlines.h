/* Gives functions of a dump the inlined calls that V8's code log has of them, as records
 * INLINE_INFO would, and tells when and why V8 gave their code up.  Functions of eval get the file
 * that their script calls itself.
 *
 * A function is the log's if address, size and name are the same.  An address is used again: if
 * dump and log have a function equally often, its first code is the first in both, and so on.  Else
 * the times decide, which differ by one constant.
 */
#ifndef PERFJIT_V8_INLINES_H
#define PERFJIT_V8_INLINES_H

#include "injector/log/code/code_log.h"
#include "injector/log/v8/v8_log.h"

/* Give LOG's functions the calls in V8, unless they have some, and LOG the deopts.  ROOT: below
 * which scripts are read, or NULL.  *GIVEN is raised by the number of functions that got calls.
 * Returns 0, or -1 with the failure text set. */
int v8_inlines_give(struct code_log *log, const struct v8_log *v8, const char *root, size_t *given,
                    struct findings *findings);

#endif
