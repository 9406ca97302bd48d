/* Moments of a run: when a function was first seen in a higher tier than before, when its code was
 * given up, and when garbage was collected.
 *
 * Samples show them, as exactly as samples are close.  V8's code log tells the exact time of
 * deopts, and why: what it tells stands for what samples show. */
#ifndef PERFJIT_PROFILE_MOMENTS_H
#define PERFJIT_PROFILE_MOMENTS_H

#include "injector/profile/profile_choice.h"
#include "injector/profile/profile_functions.h"

enum moment_kind { MOMENT_TIER, MOMENT_DEOPT, MOMENT_COLLECTION };

struct profile_moment {
    enum moment_kind kind;
    uint64_t at_ns, to_ns;
    uint32_t thread;                   /* whose function; or PROFILE_NOTHING */
    uint32_t before, frame;            /* the function as it was, and is then; or PROFILE_NOTHING */
    const struct profile_deopt *deopt; /* what the runtime told of it; or NULL */
};

struct profile_moments {
    struct profile_moment *items; /* by time */
    size_t count, capacity;
};

/* Find the moments in the samples of PROFILE that CHOICE has.  Returns 0, or -1 without memory.
 * Release with profile_moments_free in either case. */
int profile_moments_find(struct profile_moments *moments, const struct call_profile *profile,
                         const struct profile_functions *functions,
                         const struct profile_choice *choice);

void profile_moments_free(struct profile_moments *moments);

/* A thread of DEOPT's process that CHOICE has at that time, the main thread if it can be;
 * PROFILE_NOTHING: none is. */
uint32_t profile_deopt_thread(const struct profile_deopt *deopt, const struct call_profile *profile,
                              const struct profile_choice *choice);

#endif
