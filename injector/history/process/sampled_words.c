/* See sampled_words.h. */
#include "injector/history/process/sampled_words.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/arrays/number_sort.h"
#include "injector/recording/perf_data/perf_format.h"

#include <stdlib.h>
#include <string.h>

struct reader {
    struct sampled_words *words;
    const struct records *records;
    const struct process_lives *lives;
    const struct address_span *spans;
    size_t span_count;
};

static int take(struct reader *reader, uint32_t life, uint64_t addr)
{
    struct sampled_words *words = reader->words;
    const struct sampled_word word = {addr, life};
    struct sampled_word *recent =
        &words->recent[(addr ^ life * UINT64_C(0x9e3779b97f4a7c15) >> 32) %
                       (sizeof words->recent / sizeof *words->recent)];
    if (recent->addr == addr && recent->life == life)
        return 0;
    *recent = word;
    /* The end of a span counts as well. */
    const struct address_span *span =
        address_spans_find(reader->spans, reader->span_count, addr ? addr - 1 : addr);
    if (!span || addr < span->start)
        return 0;
    if (array_reserve(words->items, words->count, words->capacity))
        return -1;
    words->items[words->count++] = word;
    return 0;
}

/* All words of SAMPLE, whatever they are: those of a stack stand wherever the stack pointer was,
 * and a process of 32 bits has shorter ones. */
static int take_sample(struct reader *reader, uint32_t life, const struct perf_record *sample)
{
    uint64_t low = reader->spans[0].start, high = reader->spans[reader->span_count - 1].end;
    int result = 0;
    for (size_t at = PERF_RECORD_HEADER_BYTES; at + 4 <= sample->size && !result; at += 4) {
        uint32_t half;
        memcpy(&half, sample->bytes + at, sizeof half);
        if (half >= low && half <= high)
            result = take(reader, life, half);
        uint64_t word = at + 8 <= sample->size ? perf_get_u64(sample->bytes + at) : 0;
        if (word >= low && word <= high && !result)
            result = take(reader, life, word);
    }
    return result;
}

static int compare_words(const void *left, const void *right)
{
    const struct sampled_word *a = left, *b = right;
    if (a->life != b->life)
        return a->life < b->life ? -1 : 1;
    return a->addr < b->addr ? -1 : a->addr > b->addr;
}

static int put_in_order(struct sampled_words *words)
{
    words->addresses = malloc((words->count + 1) * sizeof *words->addresses);
    if (!words->addresses)
        return -1;
    for (size_t i = 0; i < words->count; i++)
        words->addresses[i] = words->items[i].addr;
    number_sort(words->addresses, words->count, sizeof *words->addresses);
    if (words->count)
        qsort(words->items, words->count, sizeof *words->items, compare_words);
    return 0;
}

int sampled_words_read(struct sampled_words *words, const struct records *records,
                       const struct process_lives *lives, const struct address_span *spans,
                       size_t count)
{
    struct reader reader = {words, records, lives, spans, count};
    struct perf_walk walk = perf_walk_begin(records->file);
    struct perf_record record;
    words->all = perf_file_has_feature(records->file, PERF_FEATURE_AUXTRACE);
    while (count && !words->all && perf_walk_next(&walk, &record, NULL)) {
        uint32_t pid, tid;
        struct life_moment at = {0, record.number};
        if (record.type != PERF_RECORD_SAMPLE ||
            !perf_record_sample_thread(records->file, &record, &pid, &tid) ||
            !perf_record_time(records->file, &record, &at.time_ns))
            continue;
        uint32_t life = process_life_at(lives, pid, at);
        if (life != NO_LIFE && take_sample(&reader, life, &record))
            return -1;
    }
    return put_in_order(words);
}

bool sampled_words_meet(const struct sampled_words *words, uint32_t life, uint64_t start,
                        uint64_t end)
{
    size_t at;
    if (words->all)
        return true;
    if (life == NO_LIFE) {
        array_bisect(at, words->count, words->addresses[at] < start);
        return at < words->count && words->addresses[at] <= end;
    }
    const struct sampled_word first = {start, life};
    array_bisect(at, words->count, compare_words(&words->items[at], &first) < 0);
    return at < words->count && words->items[at].life == life && words->items[at].addr <= end;
}

void sampled_words_free(struct sampled_words *words)
{
    free(words->items);
    free(words->addresses);
}
