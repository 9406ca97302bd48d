/* See deferred_chains.h. */
#include "injector/recording/perf_data/deferred_chains.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/recording/perf_data/perf_format.h"
#include "injector/recording/perf_data/perf_sample.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE_AT = 6 };

/* A moment of a thread. */
struct moment {
    uint64_t cookie;
    uint64_t thread; /* its pid and tid; 0: the records do not tell them */
    uint64_t time_ns;
};

struct deferred_chain {
    struct moment at;
    const uint8_t *entries;
    size_t count;
};

struct joining {
    const struct perf_file *file;
    struct perf_plain *plain;
    struct findings *findings;
    struct deferred_chain *chains; /* by moment */
    size_t count, capacity;
    struct moment *births; /* of threads, without cookies */
    size_t birth_count, birth_capacity;
    uint8_t *record; /* room for one */
};

bool deferred_chains_expected(const struct perf_file *file)
{
    for (size_t i = 0; i < file->event_count; i++)
        if (perf_get_u64(file->data + file->events[i].attr.offset + PERF_ATTR_FLAGS) &
            PERF_ATTR_DEFERS)
            return true;
    return false;
}

/* ---- What is there ---- */

static struct moment moment_of(uint32_t pid, uint32_t tid, uint64_t time_ns)
{
    return (struct moment){.thread = (uint64_t)pid << 32 | tid, .time_ns = time_ns};
}

static int compare_moments(const struct moment *a, const struct moment *b)
{
    if (a->cookie != b->cookie)
        return a->cookie < b->cookie ? -1 : 1;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

static int compare_chains(const void *left, const void *right)
{
    const struct deferred_chain *a = left, *b = right;
    return compare_moments(&a->at, &b->at);
}

static int compare_births(const void *left, const void *right)
{
    return compare_moments(left, right);
}

/* One that says that it is longer than its record is left out. */
static int add_chain(struct joining *joining, const struct perf_record *record)
{
    struct byte_cursor cursor = byte_cursor_over(record->bytes, record->size, false);
    struct perf_sample id = {0};
    cursor_skip(&cursor, PERF_RECORD_HEADER_BYTES);
    uint64_t cookie = cursor_u64(&cursor), count = cursor_u64(&cursor);
    size_t left = cursor_left(&cursor);
    if (perf_sample_id_read(&id, joining->file, record))
        left = left < id.format->id_bytes ? 0 : left - id.format->id_bytes;
    if (cursor.failed || count > left / 8)
        return 0;
    if (array_reserve(joining->chains, joining->count, joining->capacity))
        return -1;
    struct deferred_chain *chain = &joining->chains[joining->count++];
    *chain = (struct deferred_chain){moment_of(id.pid, id.tid, id.time_ns),
                                     record->bytes + cursor.offset, (size_t)count};
    chain->at.cookie = cookie;
    return 0;
}

static int add_birth(struct joining *joining, const struct perf_record *record)
{
    struct perf_task task;
    if (!perf_record_task(joining->file, record, &task))
        return 0;
    if (array_reserve(joining->births, joining->birth_count, joining->birth_capacity))
        return -1;
    joining->births[joining->birth_count++] = moment_of(task.pid, task.tid, task.time_ns);
    return 0;
}

static int collect(struct joining *joining)
{
    struct perf_walk walk = perf_walk_begin(joining->file);
    struct perf_record record;
    int result = 0;
    while (!result && perf_walk_next(&walk, &record, NULL)) {
        if (record.type == PERF_RECORD_CALLCHAIN_DEFERRED)
            result = add_chain(joining, &record);
        else if (record.type == PERF_RECORD_FORK)
            result = add_birth(joining, &record);
    }
    if (joining->count)
        qsort(joining->chains, joining->count, sizeof *joining->chains, compare_chains);
    if (joining->birth_count)
        qsort(joining->births, joining->birth_count, sizeof *joining->births, compare_births);
    return result;
}

/* ---- Which chain is a sample's ---- */

/* Whether another thread got the number of SINCE's until UNTIL. */
static bool is_another(const struct joining *joining, const struct moment *since,
                       const struct moment *until)
{
    const struct moment first = {.thread = since->thread, .time_ns = since->time_ns + 1};
    size_t at;
    array_bisect(at, joining->birth_count, compare_moments(&joining->births[at], &first) < 0);
    return at < joining->birth_count && joining->births[at].thread == since->thread &&
           joining->births[at].time_ns <= until->time_ns;
}

/* The first chain behind the sample at AT; NULL: it is missing. */
static const struct deferred_chain *find_chain(const struct joining *joining,
                                               const struct moment *at)
{
    size_t i;
    array_bisect(i, joining->count, compare_moments(&joining->chains[i].at, at) < 0);
    const struct deferred_chain *found = i < joining->count ? &joining->chains[i] : NULL;
    return found && found->at.cookie == at->cookie && found->at.thread == at->thread &&
                   !is_another(joining, at, &found->at)
               ? found
               : NULL;
}

/* ---- Samples ---- */

/* Put SAMPLE with the first KEPT entries of its chain, and behind them the COUNT that are at REST,
 * of which the outermost are left out if there is no room. */
static int put_sample(struct joining *joining, const struct perf_sample *sample, size_t kept,
                      const uint8_t *rest, size_t count)
{
    const struct perf_record *record = sample->record;
    size_t front = perf_sample_place(sample, SAMPLE_CALLCHAIN);
    size_t behind = perf_sample_place(sample, SAMPLE_BEHIND_CALLCHAIN);
    bool marked = count && perf_get_u64(rest) >= PERF_CONTEXT_LOWEST;
    size_t room = (PERF_RECORD_MOST_BYTES - (record->size - (behind - front) + 8)) / 8;
    size_t mark = count && !marked ? 1 : 0;
    if (kept + mark > room)
        count = mark = 0;
    else if (count > room - kept - mark)
        count = room - kept - mark;
    struct byte_sink sink = byte_sink_over(joining->record, PERF_RECORD_MOST_BYTES);
    sink_bytes(&sink, record->bytes, front);
    sink_u64(&sink, kept + mark + count);
    sink_bytes(&sink, sample->chain.entries, 8 * kept);
    if (mark)
        sink_u64(&sink, PERF_CONTEXT_USER);
    sink_bytes(&sink, rest, 8 * count);
    sink_bytes(&sink, record->bytes + behind, record->size - behind);
    struct byte_sink size = byte_sink_over(joining->record + SIZE_AT, 2);
    sink_u16(&size, (uint16_t)sink.size);
    return perf_plain_add(joining->plain, joining->record, sink.size);
}

static void report_missing(const struct joining *joining, const struct perf_record *record)
{
    report_finding(joining->findings, FINDING_CALLERS_MISSING,
                   "%s: record %" PRIu64 " at 0x%" PRIx64, joining->file->path, record->number,
                   record->offset);
}

static int add_sample(struct joining *joining, const struct perf_record *record)
{
    const struct sample_format *format =
        &joining->file->events[perf_sample_event(joining->file, record)].format;
    struct perf_sample sample;
    size_t mark = 0;
    if (!(format->sample_type & PERF_SAMPLE_CALLCHAIN) ||
        !perf_sample_read(&sample, format, record, SAMPLE_CALLCHAIN))
        return perf_plain_add(joining->plain, record->bytes, (size_t)record->span);
    while (mark < sample.chain.count &&
           perf_get_u64(sample.chain.entries + 8 * mark) != PERF_CONTEXT_USER_DEFERRED)
        mark++;
    if (mark == sample.chain.count)
        return perf_plain_add(joining->plain, record->bytes, (size_t)record->span);
    const struct deferred_chain *chain = NULL;
    if (mark + 1 < sample.chain.count) {
        struct moment at = moment_of(sample.pid, sample.tid, sample.time_ns);
        at.cookie = perf_get_u64(sample.chain.entries + 8 * (mark + 1));
        chain = find_chain(joining, &at);
    }
    if (!chain)
        report_missing(joining, record);
    return put_sample(joining, &sample, mark, chain ? chain->entries : NULL,
                      chain ? chain->count : 0);
}

static int add_records(struct joining *joining)
{
    struct perf_walk walk = perf_walk_begin(joining->file);
    struct perf_record record;
    int result = 0;
    while (!result && perf_walk_next(&walk, &record, joining->findings)) {
        if (record.type == PERF_RECORD_SAMPLE)
            result = add_sample(joining, &record);
        else if (record.type != PERF_RECORD_CALLCHAIN_DEFERRED)
            result = perf_plain_add(joining->plain, record.bytes, (size_t)record.span);
    }
    return result;
}

/* ---- All of it ---- */

static int begin(struct perf_plain *plain, const struct perf_file *file)
{
    if (perf_plain_begin_like(plain, file))
        return -1;
    size_t entry_bytes = (size_t)perf_get_u64(plain->file.data + PERF_HEADER_ATTR_SIZE);
    uint8_t *attr = plain->file.data + plain->records_offset - file->event_count * entry_bytes;
    for (size_t i = 0; i < file->event_count; i++, attr += entry_bytes)
        perf_put_u64(attr + PERF_ATTR_FLAGS,
                     perf_get_u64(attr + PERF_ATTR_FLAGS) & ~PERF_ATTR_DEFERS);
    return 0;
}

int deferred_chains_join(struct perf_plain *plain, const struct perf_file *file,
                         struct findings *findings)
{
    struct joining joining = {.file = file, .plain = plain, .findings = findings};
    joining.record = malloc(PERF_RECORD_MOST_BYTES);
    int result = !joining.record || begin(plain, file) || collect(&joining) ||
                 add_records(&joining) || perf_plain_end(plain, &file->features);
    free(joining.record);
    free(joining.chains);
    free(joining.births);
    return result ? report_failure(findings, "out of memory") : 0;
}
