/* The threads in which samples were taken, and since when: for those that no record introduces.
 *
 * perf creates a thread by itself at its first sample.  With -C, or where
 * records were lost, that is all that is known of a thread.
 */
#ifndef PERFJIT_THREAD_SIGHTINGS_H
#define PERFJIT_THREAD_SIGHTINGS_H

#include <stddef.h>
#include <stdint.h>

struct thread_sighting {
    uint64_t time_ns;
    uint32_t pid, tid;
};

struct thread_sightings {
    struct thread_sighting *items;
    size_t count, capacity;
};

/* Add a sample of a thread.  Returns 0, or -1 without memory. */
int thread_sightings_add(struct thread_sightings *sightings, uint32_t pid, uint32_t tid,
                         uint64_t time_ns);

/* Keep the first one of each thread. */
void thread_sightings_reduce(struct thread_sightings *sightings);

void thread_sightings_free(struct thread_sightings *sightings);

#endif
