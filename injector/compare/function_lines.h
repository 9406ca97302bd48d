/* The source lines at which the code of each compiled function has its time, on both sides.
 *
 * A JIT compiler that logs lines, and no inlining (V8), gives those of a function that it inlined
 * to the code of its caller.  So the caller has lines that are the other function's own where that
 * one has code of its own. */
#ifndef PERFJIT_FUNCTION_LINES_H
#define PERFJIT_FUNCTION_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct function_line {
    uint32_t function, file, line; /* strings of a run set; the line's number */
    double sides[2];               /* of all runs: the base's, the new ones' */
};

struct function_lines {
    struct function_line *items; /* sorted by these three, after function_lines_join */
    size_t count, capacity;
};

/* Add VALUE.  Returns 0, or -1 without memory. */
int function_lines_add(struct function_lines *lines, const struct function_line *place, bool is_new,
                       double value);

/* Make one of those that are equal. */
void function_lines_join(struct function_lines *lines);

/* How much CALLER has on one side at the lines that CALLEE has on the other, and has not there
 * itself.  IN_NEW: which side is CALLEE's; its own is *OF, on all of its lines. */
double function_lines_inlined(const struct function_lines *lines, uint32_t caller, uint32_t callee,
                              bool in_new, double *of);

void function_lines_free(struct function_lines *lines);

#endif
