/* Deopts as an image keeps them, in its section .perfjit.deopts: the runtime's own log is gone
 * then. A line for each:
 *
 *     TIME_NS PID<tab>KIND<tab>PLACE<tab>REASON<tab>FUNCTION
 *
 * in decimal, on the recording's clock, with the function's whole name.  Valid: a line with all of
 * these.
 */
#ifndef PERFJIT_DEOPT_TEXT_H
#define PERFJIT_DEOPT_TEXT_H

#include "injector/log/code/code_log.h"

#include <stdio.h>

#define DEOPT_SECTION_NAME ".perfjit.deopts"

struct told_deopt {
    uint64_t time_ns;
    uint32_t pid;
    struct line_text kind, place, reason, function;
};

/* DEOPT, one of LOG's, of process PID. */
struct told_deopt told_deopt_of(const struct code_log *log, const struct code_deopt *deopt,
                                uint32_t pid);

void deopt_text_put(FILE *stream, const struct told_deopt *deopt);

/* Take the first line off TEXT.  Returns 1, 0 if it is not valid, or -1 if there is none. */
int deopt_text_next(struct line_text *text, struct told_deopt *deopt);

#endif
