/* What one walk over a profile's records tells: mappings, when samples were taken, clock conversion. */
#ifndef PERFJIT_PROFILE_H
#define PERFJIT_PROFILE_H

#include "injector/perf_data/perf_record.h"

struct profile_map {
    struct perf_map map;
    uint64_t time_ns;
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

void profile_free(struct profile *profile);

#endif
