/* The callers that stacks of one thread share: two samples in a row mostly differ in the innermost
 * frames alone.
 *
 *     last stack    a ─▶ b ─▶ c ─▶ d           steps, the outermost first: d, c, b
 *     this stack    e ─▶ x ─▶ c ─▶ d           shares d and c: its node begins at c's
 *
 * A step is a user's caller, with the node that its frames led to.  The steps hold as long as the
 * address space of their life has not changed. */
#ifndef PERFJIT_SHARED_CALLERS_H
#define PERFJIT_SHARED_CALLERS_H

#include "injector/recording/perf_data/perf_sample.h"

struct caller_step {
    uint64_t ip;
    uint32_t node;  /* of its innermost frame */
    uint32_t depth; /* frames from there to the outermost */
};

/* Of one thread. */
struct caller_steps {
    uint32_t tid, life;
    uint64_t version; /* of the life's address space */
    struct caller_step *items;
    size_t count, capacity;
};

enum { SHARED_CALLERS_THREADS = 256 };

/* A thread that has another's place replaces it. */
struct shared_callers {
    struct caller_steps threads[SHARED_CALLERS_THREADS];
};

/* The steps of thread TID in LIFE, whose address space has VERSION: none if they are not known. */
struct caller_steps *shared_callers_of(struct shared_callers *shared, uint32_t tid, uint32_t life,
                                       uint64_t version);

/* How many of STEPS the outermost entries of CHAIN are equal to. */
size_t caller_steps_equal(const struct caller_steps *steps, const struct sample_chain *chain);

/* Add STEP, the next one inwards.  Returns 0, or -1 without memory. */
int caller_steps_add(struct caller_steps *steps, struct caller_step step);

void shared_callers_free(struct shared_callers *shared);

#endif
