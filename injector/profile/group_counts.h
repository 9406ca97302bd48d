/* The counts of the events of a group in a sample.  With -e '{a,b}:S' perf record samples only the
 * first event.  Each of its samples has the counts of all events, from the beginning.  An event's
 * part of a sample is by how much its count grew since the sample before, as perf has it.  With
 * -e a:S the group is one event, and the sample's own period is not used either. */
#ifndef PERFJIT_GROUP_COUNTS_H
#define PERFJIT_GROUP_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct group_count {
    struct {
        uint64_t id, tid;
    } of;
    uint64_t value;
    bool used;
};

/* Begin with all zero. */
struct group_counts {
    struct group_count *items; /* by hash */
    size_t count, capacity;
};

/* The count of the event with ID is VALUE now: that of thread TID, or 0 if all threads have one.
 * *GROWN: by how much.  Returns 0, or -1 without memory.  Release with group_counts_free in either
 * case. */
int group_counts_set(struct group_counts *counts, uint64_t id, uint32_t tid, uint64_t value,
                     uint64_t *grown);

void group_counts_free(struct group_counts *counts);

#endif
