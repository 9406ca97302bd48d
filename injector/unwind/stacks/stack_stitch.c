/* See stack_stitch.h. */
#include "injector/unwind/stacks/stack_stitch.h"

#include "injector/arrays/array.h"

#include <stdlib.h>
#include <string.h>

/* ---- Of frames that the last whole stack has ---- */

/* The entry of THREAD, made if there is none.  NULL without memory. */
static struct stitch_thread *thread_of(struct stack_stitches *stitches, uint64_t thread)
{
    uint32_t number = number_map_get(&stitches->by_thread, thread);
    if (number != NUMBER_MAP_NOTHING)
        return &stitches->threads[number];
    if (array_reserve(stitches->threads, stitches->thread_count, stitches->thread_capacity) ||
        number_map_put(&stitches->by_thread, thread, (uint32_t)stitches->thread_count))
        return NULL;
    stitches->threads[stitches->thread_count] = (struct stitch_thread){0};
    return &stitches->threads[stitches->thread_count++];
}

static int keep(struct stitch_thread *entry, const struct stack_walker *walker)
{
    if (walker->ip_count > entry->capacity) {
        size_t capacity = walker->ip_count * 2;
        struct walked_frame *frames = realloc(entry->frames, capacity * sizeof *frames);
        if (frames)
            entry->frames = frames;
        uint64_t *ips = realloc(entry->ips, capacity * sizeof *ips);
        if (ips)
            entry->ips = ips;
        if (!frames || !ips)
            return -1;
        entry->capacity = capacity;
    }
    memcpy(entry->frames, walker->frames, walker->ip_count * sizeof *entry->frames);
    memcpy(entry->ips, walker->ips, walker->ip_count * sizeof *entry->ips);
    entry->count = walker->ip_count;
    entry->doubted = walker->doubted;
    return 0;
}

/* Add the callers of the frame of ENTRY that is WALKER's last one.  Returns false if there is
 * none. */
static bool add_callers(const struct stitch_thread *entry, struct stack_walker *walker)
{
    const struct walked_frame *last = &walker->frames[walker->ip_count - 1];
    for (size_t i = 0; i < entry->count; i++) {
        const struct walked_frame *frame = &entry->frames[i];
        if (frame->cfa != last->cfa || frame->what != last->what ||
            entry->ips[i] != walker->ips[walker->ip_count - 1])
            continue;
        size_t callers = entry->count - i - 1, room = walker->ip_most - walker->ip_count;
        if (callers == 0 || callers > room)
            return false;
        memcpy(walker->ips + walker->ip_count, entry->ips + i + 1, callers * sizeof *entry->ips);
        walker->ip_count += callers;
        return true;
    }
    return false;
}

/* ---- Of frames that no whole stack has ---- */

static struct known_caller *find_caller(struct known_caller *items, size_t size, uint64_t thread,
                                        uint64_t cfa)
{
    uint64_t mixed = (cfa ^ thread << 20 ^ thread >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(mixed >> 20) & (size - 1);
    while (items[at].callers && (items[at].thread != thread || items[at].cfa != cfa))
        at = (at + 1) & (size - 1);
    return &items[at];
}

static int enlarge_known(struct known_callers *known)
{
    size_t size = known->size ? known->size * 4 : 1024;
    struct known_caller *items = calloc(size, sizeof *items);
    if (!items)
        return -1;
    for (size_t i = 0; i < known->size; i++)
        if (known->items[i].callers)
            *find_caller(items, size, known->items[i].thread, known->items[i].cfa) =
                known->items[i];
    free(known->items);
    known->items = items;
    known->size = size;
    return 0;
}

static int keep_caller(struct known_callers *known, const struct known_caller *caller)
{
    if (2 * (known->count + 1) > known->size && enlarge_known(known))
        return -1;
    struct known_caller *item = find_caller(known->items, known->size, caller->thread, caller->cfa);
    if (item->callers == caller->callers)
        return 0;
    known->count += !item->callers;
    *item = *caller;
    return 0;
}

static int keep_callers(struct known_callers *known, const struct stack_walker *walker,
                        uint64_t thread)
{
    if (walker->ip_count < 2)
        return 0;
    uint32_t node = chain_tree_add(&known->tree, walker->ips + 1, walker->ip_count - 1);
    for (size_t i = 0; node && node != UINT32_MAX; i++) {
        const struct walked_frame *frame = &walker->frames[i];
        if (frame->cfa && keep_caller(known, &(struct known_caller){.thread = thread,
                                                                    .cfa = frame->cfa,
                                                                    .callers = node,
                                                                    .what = frame[1].what}))
            return -1;
        node = known->tree.nodes[node].caller;
    }
    return node == UINT32_MAX ? -1 : 0;
}

/* The address inside ITEM's call of the function of WALKER's last frame; 0: it has none, or more
 * than one. */
static uint64_t call_in(const struct known_callers *known, struct known_caller *item,
                        struct stack_walker *walker)
{
    struct stack_function callee = stack_walk_function(walker, walker->ip_count - 1);
    if (callee.file && (item->callee.file != callee.file || item->callee.start != callee.start)) {
        uint64_t ip = known->tree.nodes[item->callers].ip;
        item->call = stack_walk_call(walker, ip, item->what, callee);
        item->callee = callee;
    }
    return callee.file ? item->call : 0;
}

static bool add_known_callers(struct known_callers *known, struct stack_walker *walker,
                              uint64_t thread)
{
    uint64_t cfa = walker->frames[walker->ip_count - 1].cfa;
    if (!known->size)
        return false;
    struct known_caller *item = find_caller(known->items, known->size, thread, cfa);
    if (!item->callers)
        return false;
    const struct chain_node *nodes = known->tree.nodes;
    uint64_t call = call_in(known, item, walker);
    if (!call || nodes[item->callers].length > walker->ip_most - walker->ip_count)
        return false;
    walker->ips[walker->ip_count++] = call;
    for (uint32_t node = nodes[item->callers].caller; node; node = nodes[node].caller)
        walker->ips[walker->ip_count++] = nodes[node].ip;
    return true;
}

static void free_callers(struct known_callers *known)
{
    free(known->items);
    chain_tree_free(&known->tree);
    *known = (struct known_callers){0};
}

enum stack_end stack_stitch(struct stack_stitches *stitches, struct stack_walker *walker,
                            uint64_t thread, enum stack_end end)
{
    bool ends_known = walker->ip_count && walker->frames[walker->ip_count - 1].cfa;
    bool began = end == STACK_WHOLE || end == STACK_UNPROVEN;
    if (!began && ((end != STACK_CUT && end != STACK_EMPTY && end != STACK_OUTSIDE) || !ends_known))
        return end;
    struct stitch_thread *entry = thread_of(stitches, thread);
    if (!entry || (began && (keep(entry, walker) ||
                             (!walker->doubted && keep_callers(&stitches->known, walker, thread)))))
        return STACK_ENDS;
    if (began)
        return end;
    if (add_callers(entry, walker))
        walker->doubted |= entry->doubted;
    else if (!add_known_callers(&stitches->known, walker, thread))
        return end;
    return walker->doubted ? STACK_UNPROVEN : STACK_WHOLE;
}

void stack_stitches_free(struct stack_stitches *stitches)
{
    for (size_t i = 0; i < stitches->thread_count; i++) {
        free(stitches->threads[i].frames);
        free(stitches->threads[i].ips);
    }
    free(stitches->threads);
    number_map_free(&stitches->by_thread);
    free_callers(&stitches->known);
    *stitches = (struct stack_stitches){0};
}
