/* See profile.h. */
#include "injector/perf_data/profile.h"

#include "injector/array.h"
#include "injector/perf_data/perf_format.h"
#include "jitdump/byte_cursor.h"

#include <stdlib.h>

static int add_map(struct profile *profile, const struct perf_record *record)
{
    struct profile_map *maps =
        array_room(profile->maps, profile->map_count, &profile->map_capacity, sizeof *maps);
    if (!maps)
        return -1;
    profile->maps = maps;
    struct profile_map *map = &maps[profile->map_count];
    if (!perf_record_map(profile->file, record, &map->map))
        return 0;
    map->record = *record;
    map->time_ns = 0;
    perf_record_time(profile->file, record, &map->time_ns);
    profile->map_count++;
    return 0;
}

static int add_comm(struct profile *profile, const struct perf_record *record)
{
    struct byte_cursor cursor = byte_cursor_over(record->bytes, record->size, false);
    cursor_skip(&cursor, PERF_RECORD_HEADER_BYTES);
    uint32_t pid = cursor_u32(&cursor), tid = cursor_u32(&cursor);
    if (cursor.failed || pid != tid)
        return 0;
    struct profile_comm *comms =
        array_room(profile->comms, profile->comm_count, &profile->comm_capacity, sizeof *comms);
    if (!comms)
        return -1;
    profile->comms = comms;
    struct profile_comm *comm = &comms[profile->comm_count++];
    *comm = (struct profile_comm){0, pid, *record};
    perf_record_time(profile->file, record, &comm->time_ns);
    return 0;
}

const struct perf_record *profile_comm_of(const struct profile *profile, uint32_t pid,
                                          uint64_t time_ns)
{
    const struct profile_comm *best = NULL;
    for (size_t i = 0; i < profile->comm_count; i++) {
        const struct profile_comm *comm = &profile->comms[i];
        if (comm->pid == pid && comm->time_ns <= time_ns &&
            (!best || comm->time_ns >= best->time_ns))
            best = comm;
    }
    return best ? &best->record : NULL;
}

static int add_sample(struct profile *profile, const struct perf_record *record)
{
    uint64_t *times = array_room(profile->sample_times_ns, profile->sample_count,
                                 &profile->sample_capacity, sizeof *times);
    if (!times)
        return -1;
    profile->sample_times_ns = times;
    if (perf_record_time(profile->file, record, &times[profile->sample_count]))
        profile->sample_count++;
    return 0;
}

static void read_time_conv(struct time_conv *conv, const struct perf_record *record)
{
    struct byte_cursor cursor = byte_cursor_over(record->bytes, record->size, false);
    cursor_skip(&cursor, PERF_RECORD_HEADER_BYTES);
    conv->shift = cursor_u64(&cursor);
    conv->mult = cursor_u64(&cursor);
    conv->zero_ns = cursor_u64(&cursor);
    conv->known = !cursor.failed && conv->mult != 0 && conv->shift < 64;
    conv->cycles = cursor_u64(&cursor);
    conv->mask = cursor_u64(&cursor);
    cursor_u8(&cursor);
    conv->short_counter = cursor_u8(&cursor) && !cursor.failed;
}

static int compare_maps(const void *left, const void *right)
{
    const struct profile_map *a = left, *b = right;
    if (a->map.pid != b->map.pid)
        return a->map.pid < b->map.pid ? -1 : 1;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return a->record.number < b->record.number ? -1 : a->record.number > b->record.number;
}

static int compare_times(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

static int read_record(struct profile *profile, const struct perf_record *record)
{
    switch (record->type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        return add_map(profile, record);
    case PERF_RECORD_COMM:
        return add_comm(profile, record);
    case PERF_RECORD_SAMPLE:
        return add_sample(profile, record);
    case PERF_RECORD_TIME_CONV:
        read_time_conv(&profile->time_conv, record);
        return 0;
    default:
        return 0;
    }
}

int profile_read(struct profile *profile, const struct perf_file *file, struct findings *findings)
{
    *profile = (struct profile){.file = file};
    struct perf_walk walk = perf_walk_begin(file);
    struct perf_record record;
    while (perf_walk_next(&walk, &record, findings)) {
        if (read_record(profile, &record))
            return failure(findings, "out of memory");
    }
    if (profile->map_count)
        qsort(profile->maps, profile->map_count, sizeof *profile->maps, compare_maps);
    if (profile->sample_count)
        qsort(profile->sample_times_ns, profile->sample_count, sizeof(uint64_t), compare_times);
    return 0;
}

const struct profile_map *profile_maps_of(const struct profile *profile, uint32_t pid,
                                          size_t *count)
{
    size_t first = 0, end = profile->map_count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (profile->maps[middle].map.pid < pid)
            first = middle + 1;
        else
            end = middle;
    }
    for (*count = 0; first + *count < profile->map_count; ++*count)
        if (profile->maps[first + *count].map.pid != pid)
            break;
    return profile->maps + first;
}

void profile_free(struct profile *profile)
{
    free(profile->maps);
    free(profile->comms);
    free(profile->sample_times_ns);
}
