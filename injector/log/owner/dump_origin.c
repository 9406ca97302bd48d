/* See dump_origin.h. */
#include "injector/log/owner/dump_origin.h"

#include "injector/recording/host/mapped_path.h"
#include "injector/recording/perf_data/perf_time.h"

#include <sys/stat.h>

#define NS_PER_S UINT64_C(1000000000)

/* Wall clocks are set, and files get their times from one that ticks only every few
 * milliseconds. */
#define WALL_SLACK_NS NS_PER_S

/* A runtime need not compile anything for a while, but hardly ever for this long. */
#define LONG_NS (24 * 3600 * NS_PER_S)

void dump_origin_begin(struct dump_origin *origin, const struct records *records)
{
    struct stat status;
    *origin = (struct dump_origin){.records = records,
                                   .recording_owner = -1,
                                   .recorded_wall_ns = UINT64_MAX,
                                   .written_wall_ns = UINT64_MAX};
    recording_host_read(&origin->host, records->file);
    uint64_t last_ns = records_last_sample_ns(records);
    if (origin->host.has_wall_clock && last_ns)
        origin->recorded_wall_ns =
            perf_time_after(recording_host_wall_ns(&origin->host, last_ns), WALL_SLACK_NS);
    if (stat(records->file->path, &status))
        return;
    origin->recording_owner = (int64_t)status.st_uid;
    if (S_ISREG(status.st_mode))
        origin->written_wall_ns = (uint64_t)status.st_mtim.tv_sec * NS_PER_S +
                                  (uint64_t)status.st_mtim.tv_nsec + WALL_SLACK_NS;
}

/* ---- Which file ---- */

/* Whether the generations of both inodes are known. */
static bool have_generations(const struct perf_map *map, const struct jit_dump *dump)
{
    return map->generation && dump->has_generation;
}

enum file_identity dump_origin_compare(const struct dump_origin *origin, const struct perf_map *map,
                                       const struct jit_dump *dump)
{
    if (!mapped_inode_is_on(map, dump->dev))
        return FILE_UNKNOWN;
    if (dump->ino != map->ino) /* another machine's device may have the same number */
        return recording_host_is_here(&origin->host) ? FILE_OTHER : FILE_UNKNOWN;
    if (have_generations(map, dump))
        return dump->generation == map->generation ? FILE_SAME : FILE_OTHER;
    return dump->born_ns > origin->recorded_wall_ns ? FILE_OTHER : FILE_SAME;
}

bool dump_origin_is_proven(const struct dump_origin *origin, const struct perf_map *map,
                           const struct jit_dump *dump)
{
    return dump_origin_compare(origin, map, dump) == FILE_SAME &&
           (have_generations(map, dump) ||
            (dump->born_ns && dump->born_ns <= origin->written_wall_ns));
}

/* ---- What is in it ---- */

/* The time of the first function in DUMP; false: there is none. */
static bool first_load(const struct jit_dump *dump, const struct jit_clock *clock,
                       uint64_t *time_ns)
{
    struct jit_dump_walk walk = jit_dump_begin(dump);
    struct jit_record record;
    for (;;) {
        enum jit_dump_end end = jit_dump_next(&walk, &record);
        if (!jit_dump_goes_on(end))
            return false;
        if (end == JIT_DUMP_MORE && record.id == JIT_CODE_LOAD && !record.broken) {
            *time_ns = jit_clock_to_perf(clock, record.timestamp);
            return true;
        }
    }
}

/* Whether the header's time is of the records' clock: JSC's is a little after the first of them,
 * V8's and CPython's of the wall clock. */
static bool is_of_records(const struct jit_dump *dump, const struct jit_clock *clock,
                          uint64_t header_ns)
{
    uint64_t first_ns;
    if (!first_load(dump, clock, &first_ns))
        return true;
    return header_ns <= perf_time_after(first_ns, HEADER_SLACK_NS) &&
           first_ns <= perf_time_after(header_ns, LONG_NS);
}

/* V8 and CPython put microseconds of the wall clock into the header. */
static uint64_t wall_distance(const struct dump_origin *origin, uint64_t marker_ns,
                              const struct jit_dump *dump)
{
    if (!origin->host.has_wall_clock || dump->timestamp > UINT64_MAX / 1000)
        return DISTANCE_UNKNOWN;
    uint64_t distance =
        perf_time_apart(dump->timestamp * 1000, recording_host_wall_ns(&origin->host, marker_ns));
    return distance < LONG_NS ? distance : DISTANCE_UNKNOWN;
}

uint64_t dump_origin_distance(const struct dump_origin *origin, const struct recorded_map *marker,
                              const struct jit_dump *dump, const struct jit_clock *clock)
{
    uint64_t marker_ns = marker->time_ns;
    if (marker->synthesized || clock->frozen || clock->by_marker)
        return DISTANCE_UNKNOWN;
    uint64_t by_wall_ns = wall_distance(origin, marker_ns, dump);
    uint64_t header_ns = jit_clock_to_perf(clock, dump->timestamp);
    uint64_t distance_ns =
        perf_time_apart(header_ns, marker_ns) + (clock->unflagged ? UNFLAGGED_NS : 0);
    if (distance_ns < by_wall_ns && is_of_records(dump, clock, header_ns))
        return distance_ns;
    return by_wall_ns;
}

size_t dump_origin_fit(const struct process_life *life, const struct jit_dump *dump,
                       const struct jit_clock *clock, uint64_t slack_ns, size_t limit,
                       size_t *total)
{
    struct jit_dump_walk walk = jit_dump_begin(dump);
    struct jit_record record;
    size_t fitting = 0, seen = 0;
    uint64_t begin = life->begin.time_ns > slack_ns ? life->begin.time_ns - slack_ns : 0;
    uint64_t end = life->end_ns < UINT64_MAX - slack_ns ? life->end_ns + slack_ns : UINT64_MAX;
    enum jit_dump_end end_of_walk;
    while (fitting < limit && jit_dump_goes_on(end_of_walk = jit_dump_next(&walk, &record))) {
        if (end_of_walk != JIT_DUMP_MORE || record.id != JIT_CODE_LOAD)
            continue;
        uint64_t time_ns = jit_clock_to_perf(clock, record.timestamp);
        seen++;
        fitting += time_ns >= begin && time_ns <= end;
    }
    if (total)
        *total = seen;
    return fitting;
}
