/* See sampled_addresses.h. */
#include "injector/inject/merge/sampled_addresses.h"

#include "injector/arrays/bisect.h"
#include "injector/arrays/number_sort.h"
#include "injector/recording/perf_data/perf_format.h"
#include "injector/recording/perf_data/perf_record.h"

#include <stdlib.h>

bool sampled_addresses_are_words(const struct perf_file *file, bool has_chains)
{
    uint64_t others = PERF_SAMPLE_RAW | (has_chains ? 0 : PERF_SAMPLE_STACK_USER);
    for (size_t i = 0; i < file->event_count; i++)
        if (file->events[i].format.sample_type & others)
            return false;
    return !perf_file_has_feature(file, PERF_FEATURE_AUXTRACE);
}

static int take(struct sampled_addresses *set, uint64_t addr)
{
    uint64_t *recent = &set->recent[addr % (sizeof set->recent / sizeof *set->recent)];
    if (*recent == addr)
        return 0;
    *recent = addr;
    const struct address_span *span = address_spans_find(set->spans, set->span_count, addr);
    if (!span || addr < span->start)
        return 0;
    if (array_reserve(set->items, set->count, set->capacity))
        return -1;
    set->items[set->count++] = addr;
    return 0;
}

/* All words of SAMPLE, whatever they are. */
static int take_words(struct sampled_addresses *set, const struct perf_record *sample)
{
    uint64_t low = set->spans[0].start, high = set->spans[set->span_count - 1].end;
    for (size_t at = PERF_RECORD_HEADER_BYTES; at + 8 <= sample->size; at += 8) {
        uint64_t word = perf_get_u64(sample->bytes + at);
        if (word >= low && word < high && take(set, word))
            return -1;
    }
    return 0;
}

int sampled_addresses_read(struct sampled_addresses *set, const struct perf_file *file,
                           const struct chain_tree *chains)
{
    struct perf_walk walk = perf_walk_begin(file);
    struct perf_record record;
    if (set->span_count == 0)
        return 0;
    while (perf_walk_next(&walk, &record, NULL))
        if (record.type == PERF_RECORD_SAMPLE && take_words(set, &record))
            return -1;
    for (size_t i = 1; chains && i < chains->count; i++)
        if (take(set, chains->nodes[i].ip))
            return -1;
    number_sort(set->items, set->count, sizeof *set->items);
    return 0;
}

bool sampled_addresses_meet(const struct sampled_addresses *set, uint64_t start, uint64_t end)
{
    size_t at;
    array_bisect(at, set->count, set->items[at] < start);
    return at < set->count && set->items[at] <= end;
}

void sampled_addresses_free(struct sampled_addresses *set)
{
    free(set->items);
}
