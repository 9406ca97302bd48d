/* See profile_calls.h. */
#include "injector/profile/profile_calls.h"

#include "injector/arrays/bisect.h"

#include <stdlib.h>

static int order(uint32_t a, uint32_t b)
{
    return a < b ? -1 : a > b;
}

static int by_caller(const void *left, const void *right)
{
    const struct profile_call *a = left, *b = right;
    int callers = order(a->caller, b->caller);
    int callees = callers ? callers : order(a->callee, b->callee);
    return callees ? callees : order(a->line, b->line);
}

static int by_callee(const void *left, const void *right)
{
    const struct profile_call *a = left, *b = right;
    int callees = order(a->callee, b->callee);
    return callees ? callees : order(a->caller, b->caller);
}

/* Sort them, and add up those of the same two functions. */
static void add_up(struct profile_calls *calls, int (*compare)(const void *, const void *))
{
    size_t kept = 0;
    qsort(calls->items, calls->count, sizeof *calls->items, compare);
    for (size_t i = 0; i < calls->count; i++)
        if (kept && compare(&calls->items[kept - 1], &calls->items[i]) == 0) {
            calls->items[kept - 1].self += calls->items[i].self;
            calls->items[kept - 1].weight += calls->items[i].weight;
        } else {
            calls->items[kept++] = calls->items[i];
        }
    calls->count = kept;
}

static uint32_t function_of(const struct profile_counted *counted, uint32_t node)
{
    return counted->functions->of_frame[counted->profile->nodes[node].frame];
}

int profile_calls_out(struct profile_calls *calls, const struct profile_counted *counted)
{
    const struct profile_totals *totals = counted->totals;
    *calls =
        (struct profile_calls){calloc(counted->profile->node_count + 1, sizeof *calls->items), 0};
    if (!calls->items)
        return -1;
    for (uint32_t i = 1; i < counted->profile->node_count; i++) {
        uint32_t parent = counted->profile->nodes[i].parent;
        uint32_t caller = parent ? function_of(counted, parent) : PROFILE_NOTHING;
        if (parent && totals->called[i] && caller != function_of(counted, i))
            calls->items[calls->count++] = (struct profile_call){
                caller, function_of(counted, i), counted->profile->nodes[parent].line,
                totals->of_node[i], totals->called[i]};
    }
    add_up(calls, by_caller);
    return 0;
}

/* If a function calls itself, its caller is the first one's: CALLERS, by node. */
static void find_callers(uint32_t *callers, const struct profile_counted *counted)
{
    for (uint32_t i = 1; i < counted->profile->node_count; i++) {
        uint32_t parent = counted->profile->nodes[i].parent;
        callers[i] = !parent ? PROFILE_NOTHING
                     : function_of(counted, parent) == function_of(counted, i)
                         ? callers[parent]
                         : function_of(counted, parent);
    }
}

int profile_calls_in(struct profile_calls *calls, const struct profile_counted *counted)
{
    const struct profile_totals *totals = counted->totals;
    size_t most = counted->profile->node_count + 1;
    uint32_t *callers = calloc(most, sizeof *callers);
    *calls = (struct profile_calls){calloc(most, sizeof *calls->items), 0};
    if (!calls->items || !callers) {
        free(callers);
        return -1;
    }
    find_callers(callers, counted);
    for (uint32_t i = 1; i < counted->profile->node_count; i++)
        if (totals->innermost[i])
            calls->items[calls->count++] = (struct profile_call){
                callers[i], function_of(counted, i), 0, totals->of_node[i], totals->innermost[i]};
    free(callers);
    add_up(calls, by_callee);
    return 0;
}

size_t profile_calls_of(const struct profile_calls *calls, uint32_t function, bool caller)
{
    size_t before;
    array_bisect(before, calls->count,
                 (caller ? calls->items[before].caller : calls->items[before].callee) < function);
    return before;
}

void profile_calls_free(struct profile_calls *calls)
{
    free(calls->items);
    *calls = (struct profile_calls){0};
}
