/* See clock_evidence.h. */
#include "injector/log/clock/clock_evidence.h"

#include "injector/arrays/bisect.h"
#include "injector/arrays/number_sort.h"
#include "injector/log/jitdump/dump_name.h"

#include "injector/arrays/array.h"
#include "injector/recording/perf_data/perf_format.h"
#include "injector/recording/perf_data/perf_sample.h"
#include "injector/recording/perf_data/perf_time.h"
#include "jitdump/format/byte_cursor.h"

#include <stdlib.h>
#include <string.h>

/* ---- The dump ---- */

/* Addresses that a function had from a moment on. */
struct residence {
    uint64_t start, end;
    uint64_t stamp;
    bool shared;       /* with another residence, or a file's code */
    uint64_t first_ns; /* of the samples in it; UINT64_MAX: none */
};

struct residences {
    struct residence *items; /* by start */
    size_t count, capacity;
};

static int add_residence(struct residences *residences, uint64_t start, uint64_t size,
                         uint64_t stamp)
{
    if (array_reserve(residences->items, residences->count, residences->capacity))
        return -1;
    residences->items[residences->count++] =
        (struct residence){start, start + (size ? size : 1), stamp, false, UINT64_MAX};
    return 0;
}

/* Sort them, and find those that share addresses: with one that starts before and reaches in, or
 * starts inside. */
static void find_shared(struct residences *residences)
{
    struct residence *items = residences->items;
    size_t furthest = 0;
    number_sort(items, residences->count, sizeof *items); /* by start */
    for (size_t i = 1; i < residences->count; i++) {
        if (items[i].start < items[furthest].end)
            items[i].shared = items[furthest].shared = true;
        if (items[i].end > items[furthest].end)
            furthest = i;
    }
}

static bool has_code(const struct jit_record *record)
{
    return !record->broken && (record->id == JIT_CODE_LOAD || record->id == JIT_CODE_MOVE ||
                               record->id == JIT_CODE_UNLOAD);
}

static void read_stamps(struct stamp_range *stamps, const struct jit_dump *dump)
{
    struct jit_dump_walk walk = jit_dump_begin(dump);
    struct jit_record record;
    while (jit_dump_next(&walk, &record) == JIT_DUMP_MORE)
        if (has_code(&record))
            stamp_range_add(stamps, record.timestamp);
}

static int add_record(struct residences *residences, const struct jit_record *record)
{
    if (record->broken)
        return 0;
    if (record->id == JIT_CODE_LOAD)
        return add_residence(residences, record->load.code_addr, record->load.code_size,
                             record->timestamp);
    if (record->id == JIT_CODE_MOVE)
        return add_residence(residences, record->move.new_code_addr, record->move.code_size,
                             record->timestamp);
    return 0;
}

static int read_residences(struct residences *residences, const struct jit_dump *dump)
{
    struct jit_dump_walk walk = jit_dump_begin(dump);
    struct jit_record record;
    while (jit_dump_next(&walk, &record) == JIT_DUMP_MORE)
        if (add_record(residences, &record))
            return -1;
    find_shared(residences);
    return 0;
}

static void read_pad1(struct clock_evidence *evidence, const struct jit_dump *dump)
{
    struct byte_cursor cursor = byte_cursor_over(dump->data, dump->size, dump->big_endian);
    cursor_skip(&cursor, JITHEADER_PAD1);
    uint32_t pad1 = cursor_u32(&cursor);
    if (pad1 >> 16 == JITHEADER_PAD1_TAG)
        evidence->header_half = pad1 & 0xffff;
}

/* ---- The profile ---- */

/* How surely a mapping of FILENAME is a mapping of the dump PATH.  2: the paths agree, perhaps
 * below some root directory.  1: only the names agree, because the dump has been moved.  0: not
 * even the names agree.  It may be deleted by now. */
static int names_dump(const char *filename, const char *path)
{
    size_t length = perf_map_name_length(filename), path_length = strlen(path);
    if (length <= path_length && strncmp(path + path_length - length, filename, length) == 0)
        return 2;
    return perf_map_same_name(filename, path);
}

static uint64_t apart(uint64_t a, uint64_t b)
{
    return a < b ? b - a : a - b;
}

static bool is_in(struct clock_life life, uint64_t time_ns)
{
    return perf_time_is_real(time_ns) && time_ns >= life.begin_ns &&
           (life.end_ns == 0 || time_ns <= life.end_ns);
}

/* A dump that was mapped more than once was made anew in between, after an exec say: the header's
 * time shows which mapping belongs to the current file. */
static void read_maps(struct clock_evidence *evidence, const struct records *records,
                      const struct jit_dump *dump, uint32_t pid, struct clock_life life)
{
    size_t count;
    const struct recorded_map *maps = records_maps_of(records, pid, &count);
    int best = 1; /* of two dumps of a process with one name, each has its own mapping */
    for (size_t i = 0; i < count; i++) {
        uint64_t time_ns = maps[i].time_ns;
        if (maps[i].synthesized || !is_in(life, time_ns))
            continue;
        if (evidence->start_ns == 0 || time_ns < evidence->start_ns)
            evidence->start_ns = time_ns;
        if (time_ns > evidence->end_ns)
            evidence->end_ns = time_ns;
        int named = names_dump(maps[i].map.filename, dump->path);
        if (named < best)
            continue;
        if (named > best)
            evidence->marker_ns = 0;
        best = named;
        if ((evidence->marker_ns == 0 ||
             apart(time_ns, evidence->header) < apart(evidence->marker_ns, evidence->header)))
            evidence->marker_ns = time_ns;
    }
    /* It was there before the recording, or before the kept part (perf record --overwrite): any of
     * its code may have been, too. */
    if ((count && maps[0].time_ns == 0) || (life.begin_ns == 0 && life.end_ns != 0))
        evidence->start_ns = 0;
}

void clock_evidence_read(struct clock_evidence *evidence, const struct records *records,
                         const struct jit_dump *dump, const struct stamp_range *stamps,
                         uint32_t pid, struct clock_life life)
{
    *evidence = (struct clock_evidence){.header = dump->timestamp};
    read_pad1(evidence, dump);
    if (stamps)
        evidence->stamps = *stamps;
    else
        read_stamps(&evidence->stamps, dump);
    read_maps(evidence, records, dump, pid, life);
    evidence->ended = evidence->end_known = life.end_ns != 0 && life.end_ns != UINT64_MAX;
    if (evidence->ended) {
        evidence->end_ns = life.end_ns;
        return;
    }
    uint64_t last_ns = records_last_sample_ns(records);
    if (last_ns > evidence->end_ns)
        evidence->end_ns = last_ns;
}

/* ---- Samples ---- */

static void hit(struct residences *residences, uint64_t ip, uint64_t time_ns)
{
    size_t first;
    array_bisect(first, residences->count, residences->items[first].end <= ip);
    if (first == residences->count || residences->items[first].start > ip)
        return;
    if (time_ns < residences->items[first].first_ns)
        residences->items[first].first_ns = time_ns;
}

/* A process has ended with its first thread and when no other ends later.  Returns when, 0: no
 * thread of it has ended. */
static uint64_t read_exits(struct clock_evidence *evidence, const struct records *records,
                           uint32_t pid)
{
    size_t count;
    const struct recorded_task *tasks = records_tasks_of(records, pid, &count);
    uint64_t exit_ns = 0;
    for (size_t i = 0; i < count; i++) {
        if (tasks[i].kind != TASK_EXIT || tasks[i].time_ns < evidence->marker_ns)
            continue;
        evidence->ended = evidence->ended || tasks[i].tid == pid;
        exit_ns = tasks[i].time_ns; /* they are in order */
    }
    return exit_ns;
}

static void walk_samples(struct clock_evidence *evidence, struct residences *alone,
                         const struct records *records, uint32_t pid, struct clock_life life)
{
    struct perf_walk walk = perf_walk_begin(records->file);
    struct perf_record record;
    bool was_known = evidence->ended;
    while (perf_walk_next(&walk, &record, NULL)) {
        uint32_t whose;
        uint64_t ip, time_ns;
        if (perf_record_sample(records->file, &record, &whose, &ip) && whose == pid &&
            perf_record_time(records->file, &record, &time_ns) && is_in(life, time_ns))
            hit(alone, ip, time_ns);
    }
    uint64_t exit_ns = read_exits(evidence, records, pid);
    evidence->end_known = true;
    if (evidence->ended && !was_known)
        evidence->end_ns = exit_ns;
}

/* Keep the residences that share no address.  Returns whether there were others. */
static bool drop_shared(struct residences *residences)
{
    size_t kept = 0, count = residences->count;
    for (size_t i = 0; i < count; i++)
        if (!residences->items[i].shared)
            residences->items[kept++] = residences->items[i];
    residences->count = kept;
    return kept < count;
}

/* Whether the dump has no word of the code in MAP: it is a file's. */
static bool is_foreign(const struct recorded_map *map)
{
    return !map->map.data && !perf_map_is_memory(&map->map) &&
           !perf_map_is_shared_memory(&map->map) && map->map.len <= UINT64_MAX - map->map.start;
}

/* An address at which a library was before the function, or is after it: its samples may be the
 * library's. */
static void drop_foreign(struct residences *residences, const struct records *records, uint32_t pid)
{
    size_t count;
    const struct recorded_map *maps = records_maps_of(records, pid, &count);
    struct residence *items = residences->items;
    for (size_t i = 0; i < count; i++) {
        size_t at;
        if (!is_foreign(&maps[i]))
            continue;
        array_bisect(at, residences->count, items[at].end <= maps[i].map.start);
        for (; at < residences->count && items[at].start < maps[i].map.start + maps[i].map.len;
             at++)
            items[at].shared = true;
    }
    drop_shared(residences);
}

/* Distances between the clocks, modulo 2^64. */
static bool is_less(uint64_t distance, uint64_t other)
{
    return (int64_t)(distance - other) < 0;
}

static uint64_t distance_of(const struct residence *residence)
{
    return residence->first_ns - residence->stamp;
}

/* Whether the first record would be older than the marker, by a sample in RESIDENCE. */
static bool is_disproved(const struct clock_evidence *evidence, const struct residence *residence)
{
    uint64_t lower = evidence->marker_ns - evidence->stamps.first;
    return evidence->marker_ns && is_less(distance_of(residence) + LATE_LOG_NS, lower);
}

/* The smaller distance is the better bound. */
static void take_closest(struct clock_evidence *evidence, const struct residence *residence)
{
    uint64_t known = evidence->sampled_ns - evidence->sampled_stamp;
    if (evidence->sampled && !is_less(distance_of(residence), known))
        return;
    evidence->sampled = true;
    evidence->sampled_stamp = residence->stamp;
    evidence->sampled_ns = residence->first_ns;
}

/* One of so many may have been hit when other code was there; if more are disproved, the stamps are
 * no ns. */
enum { FEW = 10 };

static void take_bound(struct clock_evidence *evidence, const struct residences *residences)
{
    size_t hits = 0, disproved = 0;
    for (size_t i = 0; i < residences->count; i++) {
        const struct residence *residence = &residences->items[i];
        bool is_hit = residence->first_ns != UINT64_MAX;
        hits += is_hit;
        disproved += is_hit && is_disproved(evidence, residence);
    }
    bool few = disproved <= hits / FEW;
    for (size_t i = 0; i < residences->count; i++) {
        const struct residence *residence = &residences->items[i];
        if (residence->first_ns != UINT64_MAX && !(few && is_disproved(evidence, residence)))
            take_closest(evidence, residence);
    }
}

int clock_evidence_read_samples(struct clock_evidence *evidence, const struct records *records,
                                const struct jit_dump *dump, uint32_t pid, struct clock_life life)
{
    struct residences residences = {0};
    int result = read_residences(&residences, dump);
    if (!result) {
        evidence->reused = drop_shared(&residences);
        drop_foreign(&residences, records, pid);
        walk_samples(evidence, &residences, records, pid, life);
        take_bound(evidence, &residences);
    }
    free(residences.items);
    return result;
}
