/* See shared_callers.h. */
#include "injector/profile/shared_callers.h"

#include "injector/arrays/array.h"

#include <stdlib.h>

struct caller_steps *shared_callers_of(struct shared_callers *shared, uint32_t tid, uint32_t life,
                                       uint64_t version)
{
    struct caller_steps *steps = &shared->threads[tid % SHARED_CALLERS_THREADS];
    if (steps->tid != tid || steps->life != life || steps->version != version)
        steps->count = 0;
    steps->tid = tid;
    steps->life = life;
    steps->version = version;
    return steps;
}

size_t caller_steps_equal(const struct caller_steps *steps, const struct sample_chain *chain)
{
    size_t most = steps->count < chain->count ? steps->count : chain->count, equal = 0;
    const uint8_t *end = chain->entries + 8 * chain->count;
    while (equal < most && perf_get_u64(end - 8 * (equal + 1)) == steps->items[equal].ip)
        equal++;
    return equal;
}

int caller_steps_add(struct caller_steps *steps, struct caller_step step)
{
    if (array_reserve(steps->items, steps->count, steps->capacity))
        return -1;
    steps->items[steps->count++] = step;
    return 0;
}

void shared_callers_free(struct shared_callers *shared)
{
    for (size_t i = 0; i < SHARED_CALLERS_THREADS; i++)
        free(shared->threads[i].items);
}
