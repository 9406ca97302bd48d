/* See cut_chains.h. */
#include "injector/recording/cut_chains.h"

#include "injector/arrays/array.h"
#include "injector/recording/perf_data/perf_format.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { USUAL_FRAMES = 127 };

/* Where a chain ends. */
struct chain_tail {
    uint64_t ip;
    uint32_t tid;
    bool full; /* it is as long as a chain can be */
};

struct counting {
    struct cut_chains *cuts;
    size_t longest; /* of the events that say no limit */
    bool any_full;
    struct chain_tail *tails;
    size_t tail_count, tail_capacity;
};

static size_t limit_of(const struct sample_format *format, size_t longest)
{
    return format->max_stack ? format->max_stack : longest;
}

/* BPF's chains have another limit. */
static bool is_cut_by_kernel(const struct sample_format *format)
{
    return sample_format_has_chain_alone(format) && !format->off_cpu;
}

bool cut_chains_may_be(const struct perf_sample *sample)
{
    return sample->chain.count > limit_of(sample->format, USUAL_FRAMES) &&
           is_cut_by_kernel(sample->format);
}

static size_t frames_of(const struct perf_sample *sample, uint64_t *outermost)
{
    size_t frames = 0;
    for (size_t i = 0; i < sample->chain.count; i++) {
        uint64_t ip = perf_get_u64(sample->chain.entries + 8 * i);
        if (ip == PERF_CONTEXT_USER_DEFERRED)
            break;
        if (ip >= PERF_CONTEXT_LOWEST)
            continue;
        *outermost = ip;
        frames++;
    }
    return frames;
}

static int measure(struct counting *counting, const struct perf_sample *sample)
{
    uint64_t ip;
    size_t frames = frames_of(sample, &ip), most = sample->format->max_stack;
    counting->cuts->chains += frames > 0;
    counting->any_full |= frames >= limit_of(sample->format, USUAL_FRAMES);
    if (!most && frames > counting->longest)
        counting->longest = frames;
    return 0;
}

static int add_tail(struct counting *counting, const struct perf_sample *sample)
{
    struct chain_tail tail = {.tid = sample->tid};
    size_t frames = frames_of(sample, &tail.ip);
    if (!frames)
        return 0;
    tail.full = frames >= limit_of(sample->format, counting->longest);
    if (tail.full && frames > counting->cuts->frames) {
        counting->cuts->frames = frames;
        counting->cuts->by_event = sample->format->max_stack != 0;
    }
    if (array_reserve(counting->tails, counting->tail_count, counting->tail_capacity))
        return -1;
    counting->tails[counting->tail_count++] = tail;
    return 0;
}

static int each_chain(struct counting *counting, const struct perf_file *file,
                      int (*take)(struct counting *counting, const struct perf_sample *sample))
{
    struct perf_walk walk = perf_walk_begin(file);
    struct perf_record record;
    int result = 0;
    while (!result && perf_walk_next(&walk, &record, NULL)) {
        struct perf_sample sample;
        if (record.type != PERF_RECORD_SAMPLE)
            continue;
        const struct sample_format *format = &file->events[perf_sample_event(file, &record)].format;
        if (is_cut_by_kernel(format) &&
            perf_sample_read(&sample, format, &record, SAMPLE_CALLCHAIN))
            result = take(counting, &sample);
    }
    return result;
}

static int compare_tails(const void *left, const void *right)
{
    const struct chain_tail *a = left, *b = right;
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    return a->ip < b->ip ? -1 : a->ip > b->ip;
}

/* How many of the COUNT chains of one thread, by their ends, are cut. */
static uint64_t count_cut(const struct chain_tail *tails, size_t count)
{
    size_t shorter = 0, next;
    uint64_t cut = 0;
    for (size_t i = 0; i < count; i++)
        shorter += !tails[i].full;
    for (size_t i = 0; i < count; i = next) {
        size_t full = 0;
        for (next = i; next < count && tails[next].ip == tails[i].ip; next++)
            full += tails[next].full;
        if (2 * (next - i - full) <= shorter)
            cut += full;
    }
    return cut;
}

int cut_chains_count(struct cut_chains *cuts, const struct perf_file *file)
{
    struct counting counting = {.cuts = cuts, .longest = USUAL_FRAMES};
    *cuts = (struct cut_chains){0};
    each_chain(&counting, file, measure);
    int result = counting.any_full ? each_chain(&counting, file, add_tail) : 0;
    if (!result && counting.tail_count)
        qsort(counting.tails, counting.tail_count, sizeof *counting.tails, compare_tails);
    for (size_t i = 0, next; !result && i < counting.tail_count; i = next) {
        for (next = i;
             next < counting.tail_count && counting.tails[next].tid == counting.tails[i].tid;)
            next++;
        cuts->cut += count_cut(counting.tails + i, next - i);
    }
    free(counting.tails);
    return result;
}

void cut_chains_text(const struct cut_chains *cuts, char *text, size_t size)
{
    snprintf(text, size,
             "%" PRIu64 " of %" PRIu64 " call chains are cut at %zu frames, and their outer "
             "callers are missing: record with a larger %s, or with -g dwarf",
             cuts->cut, cuts->chains, cuts->frames,
             cuts->by_event ? "max-stack" : "sysctl kernel.perf_event_max_stack");
}
