/* The calls between functions, and the time that they take.
 *
 * A sample counts once for each function in its stack: where that stands innermost.  So a
 * function's callers add up to its total.  Its callees and its own time also add up to its total,
 * however often the function stands in a stack.  No function calls itself. */
#ifndef PERFJIT_PROFILE_CALLS_H
#define PERFJIT_PROFILE_CALLS_H

#include "injector/profile/profile_totals.h"

struct profile_call {
    uint32_t caller, callee; /* functions; a caller can be PROFILE_NOTHING: no stack shows one */
    uint32_t line;           /* of the caller's, where nodes have lines; of callers 0 */
    uint64_t self;           /* of the callee itself */
    uint64_t weight;         /* with all that the callee calls */
};

struct profile_calls {
    struct profile_call *items;
    size_t count;
};

/* TOTALS, with the profile and the functions that they are for. */
struct profile_counted {
    const struct call_profile *profile;
    const struct profile_functions *functions;
    const struct profile_totals *totals;
};

/* The callees of functions, by caller, callee and line; and their callers, by callee.  Return 0, or
 * -1 without memory.  Release with profile_calls_free in either case. */
int profile_calls_out(struct profile_calls *calls, const struct profile_counted *counted);
int profile_calls_in(struct profile_calls *calls, const struct profile_counted *counted);

/* The first of FUNCTION's in CALLS, which are by caller, or else by callee. */
size_t profile_calls_of(const struct profile_calls *calls, uint32_t function, bool by_caller);

void profile_calls_free(struct profile_calls *calls);

#endif
