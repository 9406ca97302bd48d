/* What one walk over a profile's records tells: mappings, when samples were taken, clock conversion. */
#ifndef PERFJIT_PROFILE_H
#define PERFJIT_PROFILE_H

#include "injector/perf_data/perf_record.h"

struct profile_map {
    struct perf_map map;
    uint64_t time_ns;
    struct perf_record record;
};

/* The name that a process's main thread took. */
struct profile_comm {
    uint64_t time_ns;
    uint32_t pid;
    struct perf_record record;
};

/* How the CPU's counter becomes perf's clock: PERF_RECORD_TIME_CONV. */
struct time_conv {
    bool known;
    bool short_counter; /* the counter has only the bits of time_mask */
    uint64_t shift, mult, zero_ns;
    uint64_t cycles, mask;
};

struct profile {
    const struct perf_file *file;
    struct profile_map *maps; /* by process, then by time, then in file order */
    size_t map_count, map_capacity;
    struct profile_comm *comms; /* in file order */
    size_t comm_count, comm_capacity;
    uint64_t *sample_times_ns; /* ascending */
    size_t sample_count, sample_capacity;
    struct time_conv time_conv;
};

/* Read all records of FILE.  Returns 0, or -1 with the failure text set.  Release with profile_free in
 * either case. */
int profile_read(struct profile *profile, const struct perf_file *file, struct findings *findings);

/* The maps of process PID, by time; *COUNT is set to their number. */
const struct profile_map *profile_maps_of(const struct profile *profile, uint32_t pid,
                                          size_t *count);

/* The record that named the main thread of process PID last before TIME_NS, or NULL. */
const struct perf_record *profile_comm_of(const struct profile *profile, uint32_t pid,
                                          uint64_t time_ns);

void profile_free(struct profile *profile);

#endif
