/* See thread_sightings.h. */
#include "injector/recording/thread_sightings.h"

#include "injector/arrays/array.h"

#include <stdbool.h>
#include <stdlib.h>

static bool same_thread(const struct thread_sighting *a, const struct thread_sighting *b)
{
    return a->pid == b->pid && a->tid == b->tid;
}

int thread_sightings_add(struct thread_sightings *sightings, uint32_t pid, uint32_t tid,
                         uint64_t time_ns)
{
    const struct thread_sighting added = {time_ns, pid, tid};
    const struct thread_sighting *last =
        sightings->count ? &sightings->items[sightings->count - 1] : NULL;
    if (last && same_thread(last, &added) && last->time_ns <= time_ns)
        return 0;
    if (array_reserve(sightings->items, sightings->count, sightings->capacity))
        return -1;
    sightings->items[sightings->count++] = added;
    return 0;
}

static int compare_sightings(const void *left, const void *right)
{
    const struct thread_sighting *a = left, *b = right;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

void thread_sightings_reduce(struct thread_sightings *sightings)
{
    struct thread_sighting *items = sightings->items;
    size_t kept = 0;
    if (sightings->count)
        qsort(items, sightings->count, sizeof *items, compare_sightings);
    for (size_t i = 0; i < sightings->count; i++)
        if (kept == 0 || !same_thread(&items[kept - 1], &items[i]))
            items[kept++] = items[i];
    sightings->count = kept;
}

void thread_sightings_free(struct thread_sightings *sightings)
{
    free(sightings->items);
}
