/* How much of a profile each function has: itself, and with all that it calls.  A function that
 * calls itself has its time once. */
#ifndef PERFJIT_PROFILE_TOTALS_H
#define PERFJIT_PROFILE_TOTALS_H

#include "injector/profile/profile_choice.h"
#include "injector/profile/profile_functions.h"

struct profile_totals {
    uint64_t all;
    uint64_t *of_node;    /* that end in it: without those that it calls */
    uint64_t *below_node; /* with them */
    /* The part of it without its function further in: each sample counts for one node of each
     * function in its stack, the innermost. */
    uint64_t *innermost;
    /* The part that the innermost node of the caller's function calls by this node.  It is 0 if a
     * function calls itself.  With the function's own time these add up to its total. */
    uint64_t *called;
    uint64_t *self;  /* by frame */
    uint64_t *stood; /* by frame: with what it calls, without its function further in */
    uint64_t *function_self, *function_total;
};

/* Returns 0, or -1 without memory.  Release with profile_totals_free in either case. */
int profile_totals_count(struct profile_totals *totals, const struct call_profile *profile,
                         const struct profile_functions *functions,
                         const struct profile_choice *choice);

void profile_totals_free(struct profile_totals *totals);

#endif
