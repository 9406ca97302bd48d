/* See profile_spans.h. */
#include "injector/profile/profile_spans.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/text/name_pattern.h"

#include <stdlib.h>
#include <string.h>

/* ---- Spans ---- */

static int compare_spans(const void *left, const void *right)
{
    const struct profile_span *a = left, *b = right;
    if (a->from_ns != b->from_ns)
        return a->from_ns < b->from_ns ? -1 : 1;
    return a->to_ns > b->to_ns ? -1 : a->to_ns < b->to_ns;
}

int profile_spans_add(struct call_profile *profile, const struct marker_spans *spans)
{
    for (size_t i = 0; i < spans->count; i++) {
        const struct marker_span *span = &spans->items[i];
        const struct profile_span added = {
            .from_ns = span->from_ns,
            .to_ns = span->to_ns,
            .pid = span->pid,
            .tid = span->tid,
            .name = call_profile_add_text(profile, span->name, span->name_bytes)};
        if (added.name == PROFILE_NOTHING ||
            array_reserve(profile->spans, profile->span_count, profile->span_capacity))
            return -1;
        profile->spans[profile->span_count++] = added;
    }
    if (profile->span_count)
        qsort(profile->spans, profile->span_count, sizeof *profile->spans, compare_spans);
    return 0;
}

/* ---- Moments ---- */

/* Which of a profile's spans are wanted, by the number of their names. */
static bool *find_names(const struct call_profile *profile, const char *name, bool *found)
{
    bool *wanted = calloc(profile->string_count + 1, sizeof *wanted);
    for (size_t i = 0; wanted && i < profile->span_count; i++) {
        const uint32_t number = profile->spans[i].name;
        wanted[number] = wanted[number] || name_is_as(call_profile_string(profile, number), name);
        *found |= wanted[number];
    }
    return wanted;
}

/* Add SPAN, which begins no earlier than those before, to the ranges from FIRST on. */
static int add_range(struct span_moments *moments, size_t first, const struct profile_span *span)
{
    struct time_range *last =
        moments->range_count > first ? &moments->ranges[moments->range_count - 1] : NULL;
    if (last && span->from_ns <= last->to_ns) {
        last->to_ns = last->to_ns > span->to_ns ? last->to_ns : span->to_ns;
        return 0;
    }
    if (array_reserve(moments->ranges, moments->range_count, moments->range_capacity))
        return -1;
    moments->ranges[moments->range_count++] = (struct time_range){span->from_ns, span->to_ns};
    return 0;
}

/* Wanted spans, by process, thread and time. */
struct chosen_spans {
    struct profile_span *items;
    size_t count;
};

static int compare_owners(const void *left, const void *right)
{
    const struct profile_span *a = left, *b = right;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    return compare_spans(left, right);
}

static int choose_spans(struct chosen_spans *chosen, const struct call_profile *profile,
                        const bool *wanted)
{
    chosen->items = calloc(profile->span_count + 1, sizeof *chosen->items);
    for (size_t i = 0; chosen->items && i < profile->span_count; i++)
        if (wanted[profile->spans[i].name])
            chosen->items[chosen->count++] = profile->spans[i];
    if (chosen->count)
        qsort(chosen->items, chosen->count, sizeof *chosen->items, compare_owners);
    return chosen->items ? 0 : -1;
}

/* The spans of one owner that have not been taken. */
struct owned_spans {
    const struct profile_span *next, *end;
};

static struct owned_spans spans_of(const struct chosen_spans *chosen, uint32_t pid, uint32_t tid)
{
    const struct profile_span *items = chosen->items;
    size_t first, end;
    array_bisect(first, chosen->count,
                 items[first].pid < pid || (items[first].pid == pid && items[first].tid < tid));
    array_bisect(end, chosen->count,
                 items[end].pid < pid || (items[end].pid == pid && items[end].tid <= tid));
    return (struct owned_spans){items + first, items + end};
}

static bool are_none(const struct owned_spans *spans)
{
    return spans->next == spans->end;
}

enum { ANYBODYS, OF_PROCESS, OF_THREAD, OWNERS };

/* Add the spans of all OWNERS, in order of time. */
static int add_ranges(struct span_moments *moments, struct owned_spans owned[OWNERS])
{
    const size_t first = moments->range_count;
    while (true) {
        struct owned_spans *earliest = NULL;
        for (int i = 0; i < OWNERS; i++)
            if (!are_none(&owned[i]) &&
                (!earliest || owned[i].next->from_ns < earliest->next->from_ns))
                earliest = &owned[i];
        if (!earliest)
            return 0;
        if (add_range(moments, first, earliest->next++))
            return -1;
    }
}

/* Threads without spans of their own share the ranges of their process, and processes without any
 * share those of anybody. */
static int find_ranges(struct span_moments *moments, const struct call_profile *profile,
                       const struct chosen_spans *chosen)
{
    const struct owned_spans anybodys = spans_of(chosen, 0, 0);
    size_t of_process = SIZE_MAX, of_any = SIZE_MAX; /* threads that have such ranges */
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        struct owned_spans owned[OWNERS] = {anybodys, spans_of(chosen, thread->pid, 0),
                                            spans_of(chosen, thread->pid, thread->tid)};
        const bool has_own = !are_none(&owned[OF_THREAD]);
        const bool is_any = are_none(&owned[OF_PROCESS]) && !has_own;
        size_t *like = is_any ? &of_any : &of_process;
        const bool is_shared =
            !has_own && *like != SIZE_MAX && (is_any || profile->threads[*like].pid == thread->pid);
        moments->first[i] = is_shared ? moments->first[*like] : moments->range_count;
        if (!is_shared && add_ranges(moments, owned))
            return -1;
        moments->end[i] = is_shared ? moments->end[*like] : moments->range_count;
        if (!has_own)
            *like = i;
    }
    return 0;
}

int span_moments_find(struct span_moments *moments, const struct call_profile *profile,
                      const char *name, bool *found)
{
    *found = false;
    *moments =
        (struct span_moments){.first = calloc(profile->thread_count + 1, sizeof *moments->first),
                              .end = calloc(profile->thread_count + 1, sizeof *moments->end)};
    struct chosen_spans chosen = {.count = 0};
    bool *wanted = find_names(profile, name, found);
    const bool has_memory = wanted && moments->first && moments->end;
    int result = has_memory ? choose_spans(&chosen, profile, wanted) : -1;
    result = result ? -1 : find_ranges(moments, profile, &chosen);
    free(wanted);
    free(chosen.items);
    return result;
}

/* The first of THREAD's ranges that ends behind TIME_NS. */
static size_t range_behind(const struct span_moments *moments, uint32_t thread, uint64_t time_ns)
{
    const struct time_range *ranges = moments->ranges + moments->first[thread];
    size_t at;
    array_bisect(at, moments->end[thread] - moments->first[thread], ranges[at].to_ns <= time_ns);
    return moments->first[thread] + at;
}

uint64_t span_moments_within(const struct span_moments *moments, uint32_t thread, uint64_t from_ns,
                             uint64_t to_ns)
{
    uint64_t sum = 0;
    for (size_t i = range_behind(moments, thread, from_ns);
         i < moments->end[thread] && moments->ranges[i].from_ns < to_ns; i++) {
        const struct time_range *range = &moments->ranges[i];
        sum += (range->to_ns < to_ns ? range->to_ns : to_ns) -
               (range->from_ns > from_ns ? range->from_ns : from_ns);
    }
    return sum;
}

bool span_moments_have(const struct span_moments *moments, uint32_t thread, uint64_t time_ns)
{
    const size_t at = range_behind(moments, thread, time_ns);
    return at < moments->end[thread] && moments->ranges[at].from_ns <= time_ns;
}

void span_moments_free(struct span_moments *moments)
{
    free(moments->ranges);
    free(moments->first);
    free(moments->end);
    *moments = (struct span_moments){.ranges = NULL};
}
