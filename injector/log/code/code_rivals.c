/* See code_rivals.h. */
#include "injector/log/code/code_rivals.h"

#include "injector/arrays/array.h"

#include <stdlib.h>
#include <string.h>

/* A function at its addresses. */
struct resident {
    uint64_t start, end;
    struct jit_function *function;
    size_t event; /* of its own log, that it came by */
    bool moved;   /* here, from where the last of its code_index was */
};

struct residents {
    struct resident *items;
    size_t count, capacity;
};

/* ---- Who was there ---- */

static int collect(struct residents *residents, const struct code_log *log)
{
    for (size_t i = 0; i < log->event_count; i++) {
        struct jit_function *function = code_event_function(log, &log->events[i]);
        if (!function || !function->size)
            continue;
        if (array_reserve(residents->items, residents->count, residents->capacity))
            return -1;
        residents->items[residents->count++] =
            (struct resident){function->addr, function->addr + function->size, function, i,
                              log->events[i].kind == CODE_EVENT_MOVE};
    }
    return 0;
}

static void sort(struct residents *residents, int (*compare)(const void *, const void *))
{
    if (residents->count)
        qsort(residents->items, residents->count, sizeof *residents->items, compare);
}

static int compare_numbers(const void *left, const void *right)
{
    const struct resident *a = left, *b = right;
    if (a->function->dump != b->function->dump)
        return a->function->dump < b->function->dump ? -1 : 1;
    if (a->function->code_index != b->function->code_index)
        return a->function->code_index < b->function->code_index ? -1 : 1;
    return a->event < b->event ? -1 : a->event > b->event;
}

/* A function that moved is named where it was before. */
static int name_moved(struct code_log *log)
{
    struct residents residents = {0};
    int result = collect(&residents, log);
    sort(&residents, compare_numbers);
    for (size_t i = 1; !result && i < residents.count; i++) {
        struct jit_function *moved = residents.items[i].function;
        const struct jit_function *old = residents.items[i - 1].function;
        if (!residents.items[i].moved || moved->name || old->dump != moved->dump ||
            old->code_index != moved->code_index)
            continue;
        jit_function_set_name(moved, old->name, old->name_bytes);
        moved->code = moved->size <= old->size ? old->code : NULL;
        moved->lines = old->lines;
        moved->first_fde = old->first_fde;
        moved->fde_count = old->fde_count;
    }
    free(residents.items);
    return result;
}

/* ---- Who has rivals ---- */

static int compare_places(const void *left, const void *right)
{
    const struct resident *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->end != b->end)
        return a->end > b->end ? -1 : 1;
    return a->event < b->event ? -1 : a->event > b->event;
}

static bool is_same(const struct jit_function *a, const struct jit_function *b)
{
    return a->addr == b->addr && a->size == b->size && a->name_bytes == b->name_bytes &&
           (!a->name_bytes || memcmp(a->name, b->name, a->name_bytes) == 0);
}

/* Whoever reaches furthest has a rival in each that begins before its end.  One that is the same as
 * the one before it has that one's rivals. */
static void mark(const struct residents *residents)
{
    const struct resident *items = residents->items;
    size_t furthest = 0;
    for (size_t i = 1; i < residents->count; i++) {
        struct jit_function *own = items[i].function, *before = items[i - 1].function;
        if (is_same(before, own)) {
            own->rival |= before->rival;
            furthest = furthest == i - 1 ? i : furthest;
            continue;
        }
        if (items[i].start < items[furthest].end)
            own->rival = items[furthest].function->rival = true;
        if (items[i].end >= items[furthest].end)
            furthest = i;
    }
    for (size_t i = residents->count; i-- > 1;) /* those that were the same before it was marked */
        if (is_same(items[i - 1].function, items[i].function))
            items[i - 1].function->rival |= items[i].function->rival;
}

static int mark_rivals(const struct jit_process *process)
{
    struct residents residents = {0};
    int result = 0;
    for (; !result && process; process = process->parent)
        result = collect(&residents, &process->log);
    sort(&residents, compare_places);
    if (!result)
        mark(&residents);
    free(residents.items);
    return result;
}

/* ---- What is left ---- */

static void keep_loads(struct code_log *log)
{
    size_t count = 0;
    for (size_t i = 0; i < log->event_count; i++) {
        const struct jit_function *function = code_event_function(log, &log->events[i]);
        if (function && function->name && !function->rival)
            log->events[count++] = (struct code_event){log->events[i].time_ns, CODE_EVENT_LOAD,
                                                       (uint32_t)(function - log->functions)};
    }
    log->event_count = count;
}

int code_rivals_drop(struct jit_processes *processes)
{
    int result = 0;
    for (size_t i = 0; !result && i < processes->count; i++)
        result = name_moved(&processes->items[i].log);
    for (size_t i = 0; !result && i < processes->count; i++)
        result = mark_rivals(&processes->items[i]);
    for (size_t i = 0; !result && i < processes->count; i++)
        keep_loads(&processes->items[i].log);
    return result;
}
