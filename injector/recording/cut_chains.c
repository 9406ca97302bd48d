/* See cut_chains.h. */
#include "injector/recording/cut_chains.h"

#include "injector/arrays/array.h"
#include "injector/recording/perf_data/perf_format.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { USUAL_FRAMES = 127 };

/* Where chains end. */
struct chain_tail {
    uint64_t ip;
    uint32_t tid;
    uint32_t frames; /* that may be all a chain can have; 0: there are fewer */
    bool by_event;   /* it says how many these are */
    uint64_t count;  /* chains */
};

enum { RECENT_TAILS = 256 };

struct counting {
    struct cut_chains *cuts;
    size_t longest;           /* of the events that say no limit */
    struct chain_tail *tails; /* some are there several times */
    size_t tail_count, tail_capacity;
    size_t recent[RECENT_TAILS]; /* + 1: tails */
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

static bool same_tail(const struct chain_tail *a, const struct chain_tail *b)
{
    return a->ip == b->ip && a->tid == b->tid && a->frames == b->frames &&
           a->by_event == b->by_event;
}

static int add_tail(struct counting *counting, const struct chain_tail *tail)
{
    size_t *recent = &counting->recent[(tail->ip ^ tail->tid) % RECENT_TAILS];
    if (*recent && same_tail(&counting->tails[*recent - 1], tail)) {
        counting->tails[*recent - 1].count++;
        return 0;
    }
    if (array_reserve(counting->tails, counting->tail_count, counting->tail_capacity))
        return -1;
    counting->tails[counting->tail_count++] = *tail;
    *recent = counting->tail_count;
    return 0;
}

static int take(struct counting *counting, const struct perf_sample *sample)
{
    const size_t most = sample->format->max_stack;
    struct chain_tail tail = {.tid = sample->tid, .by_event = most, .count = 1};
    size_t frames = frames_of(sample, &tail.ip);
    if (!frames)
        return 0;
    counting->cuts->chains++;
    if (!most && frames > counting->longest)
        counting->longest = frames;
    if (frames >= limit_of(sample->format, USUAL_FRAMES))
        tail.frames = (uint32_t)frames;
    return add_tail(counting, &tail);
}

static int take_all(struct counting *counting, const struct perf_file *file)
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

/* Whether chains of TAIL are as long as a chain can be. */
static bool is_full(const struct counting *counting, const struct chain_tail *tail)
{
    return tail->frames && (tail->by_event || tail->frames >= counting->longest);
}

static int compare_tails(const void *left, const void *right)
{
    const struct chain_tail *a = left, *b = right;
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    return a->ip < b->ip ? -1 : a->ip > b->ip;
}

/* The longest of the full ones. */
static void find_longest(struct counting *counting)
{
    struct cut_chains *cuts = counting->cuts;
    for (size_t i = 0; i < counting->tail_count; i++) {
        const struct chain_tail *tail = &counting->tails[i];
        if (!is_full(counting, tail) || tail->frames <= cuts->frames)
            continue;
        cuts->frames = tail->frames;
        cuts->by_event = tail->by_event;
    }
}

/* How many of the chains of one thread, of COUNT tails by their ends, are cut. */
static uint64_t count_cut(const struct counting *counting, const struct chain_tail *tails,
                          size_t count)
{
    uint64_t shorter = 0, cut = 0;
    size_t next;
    for (size_t i = 0; i < count; i++)
        shorter += is_full(counting, &tails[i]) ? 0 : tails[i].count;
    for (size_t i = 0; i < count; i = next) {
        uint64_t full = 0, rest = 0;
        for (next = i; next < count && tails[next].ip == tails[i].ip; next++)
            *(is_full(counting, &tails[next]) ? &full : &rest) += tails[next].count;
        if (2 * rest <= shorter)
            cut += full;
    }
    return cut;
}

int cut_chains_count(struct cut_chains *cuts, const struct perf_file *file)
{
    struct counting counting = {.cuts = cuts, .longest = USUAL_FRAMES};
    *cuts = (struct cut_chains){0};
    int result = take_all(&counting, file);
    find_longest(&counting);
    if (!result && counting.tail_count)
        qsort(counting.tails, counting.tail_count, sizeof *counting.tails, compare_tails);
    for (size_t i = 0, next; !result && i < counting.tail_count; i = next) {
        for (next = i;
             next < counting.tail_count && counting.tails[next].tid == counting.tails[i].tid;)
            next++;
        cuts->cut += count_cut(&counting, counting.tails + i, next - i);
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
