/* See sampled_addresses.h. */
#include "injector/recording/sampled_addresses.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/recording/perf_data/perf_format.h"
#include "injector/recording/perf_data/perf_sample.h"

#include <stdlib.h>
#include <string.h>

static int take(struct sampled_addresses *set, uint64_t addr, uint32_t life,
                const struct address_span *spans, size_t count)
{
    struct sampled_address *recent =
        &set->recent[(addr ^ life * UINT64_C(0x9e3779b97f4a7c15) >> 32) %
                     (sizeof set->recent / sizeof *set->recent)];
    if (recent->addr == addr && recent->life == life)
        return 0;
    *recent = (struct sampled_address){addr, life};
    /* The end of a span counts as well. */
    const struct address_span *span = address_spans_find(spans, count, addr ? addr - 1 : addr);
    if (!span || addr < span->start)
        return 0;
    if (array_reserve(set->items, set->count, set->capacity))
        return -1;
    set->items[set->count++] = *recent;
    return 0;
}

int sampled_addresses_add(struct sampled_addresses *set, uint64_t addr,
                          const struct address_span *spans, size_t count)
{
    return take(set, addr, NO_LIFE, spans, count);
}

struct reader {
    struct sampled_addresses *set;
    const struct address_span *spans;
    size_t span_count;
    uint32_t life; /* of the sample */
};

static int look_at(struct reader *reader, uint64_t addr)
{
    if (addr < reader->spans[0].start || addr > reader->spans[reader->span_count - 1].end)
        return 0;
    if (reader->life != NO_LIFE &&
        take(reader->set, addr, reader->life, reader->spans, reader->span_count))
        return -1;
    return take(reader->set, addr, NO_LIFE, reader->spans, reader->span_count);
}

static int take_words(struct reader *reader, const struct perf_record *sample)
{
    for (size_t at = PERF_RECORD_HEADER_BYTES; at + 8 <= sample->size; at += 8)
        if (look_at(reader, perf_get_u64(sample->bytes + at)))
            return -1;
    return 0;
}

/* The words of a stack stand wherever the stack pointer was, and a process of 32 bits has shorter
 * ones. */
static int take_halves(struct reader *reader, const struct perf_record *sample)
{
    for (size_t at = PERF_RECORD_HEADER_BYTES; at + 4 <= sample->size; at += 4) {
        uint32_t half;
        memcpy(&half, sample->bytes + at, sizeof half);
        if (look_at(reader, half) ||
            (at + 8 <= sample->size && look_at(reader, perf_get_u64(sample->bytes + at))))
            return -1;
    }
    return 0;
}

static uint32_t life_of(const struct perf_file *file, const struct process_lives *lives,
                        const struct perf_record *sample)
{
    struct sample_place place;
    if (!perf_record_sample_place(file, sample, &place) || !place.has_time)
        return NO_LIFE;
    return process_life_at(lives, place.pid, (struct life_moment){place.time_ns, sample->number});
}

int sampled_addresses_read(struct sampled_addresses *set, const struct perf_file *file,
                           const struct process_lives *lives, const struct address_span *spans,
                           size_t count)
{
    struct reader reader = {set, spans, count, NO_LIFE};
    struct perf_walk walk = perf_walk_begin(file);
    struct perf_record record;
    int result = 0;
    while (count && !result && perf_walk_next(&walk, &record, NULL)) {
        if (record.type != PERF_RECORD_SAMPLE)
            continue;
        if (lives)
            reader.life = life_of(file, lives, &record);
        if (!lives)
            result = take_words(&reader, &record);
        else if (reader.life != NO_LIFE)
            result = take_halves(&reader, &record);
    }
    return result;
}

static int compare(const void *left, const void *right)
{
    const struct sampled_address *a = left, *b = right;
    if (a->life != b->life)
        return a->life < b->life ? -1 : 1;
    return a->addr < b->addr ? -1 : a->addr > b->addr;
}

void sampled_addresses_sort(struct sampled_addresses *set)
{
    if (set->count)
        qsort(set->items, set->count, sizeof *set->items, compare);
}

bool sampled_addresses_meet(const struct sampled_addresses *set, uint32_t life, uint64_t start,
                            uint64_t end)
{
    size_t at;
    const struct sampled_address first = {start, life};
    array_bisect(at, set->count, compare(&set->items[at], &first) < 0);
    return at < set->count && set->items[at].life == life && set->items[at].addr <= end;
}

void sampled_addresses_free(struct sampled_addresses *set)
{
    free(set->items);
}
