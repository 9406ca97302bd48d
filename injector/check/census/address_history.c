/* See address_history.h. */
#include "injector/check/census/address_history.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/arrays/number_sort.h"
#include "injector/log/jitdump/dump_name.h"

#include <stdlib.h>
#include <string.h>

static int find_code(struct history_part *part)
{
    const struct code_log *log = part->timeline->log;
    for (size_t i = 0; i < log->function_count; i++)
        if (address_map_set(&part->code, log->functions[i].addr,
                            log->functions[i].addr + log->functions[i].size, 0))
            return -1;
    return 0;
}

int history_part_begin(struct history_part *part)
{
    bool matters = false;
    if (!part->process)
        return 0;
    for (size_t i = 0; i < part->map_count && !matters; i++)
        matters = perf_map_is_shared_memory(&part->maps[i].map);
    return matters ? find_code(part) : 0;
}

void history_part_end(struct history_part *part)
{
    address_map_free(&part->code);
}

/* ---- Mappings ---- */

/* If there is a function in it. */
static bool may_be_arena(const struct history_part *part, const struct perf_map *map)
{
    return perf_map_is_shared_memory(map) &&
           address_map_meets(&part->code, map->start, map->start + map->len);
}

/* The first of the addresses that is not below ADDR. */
static size_t first_from(const struct address_history *history, uint64_t addr)
{
    size_t first;
    array_bisect(first, history->count, history->asked[first] < addr);
    return first;
}

static void keep(struct address_history *history, struct address_before before)
{
    if (array_reserve(history->before, history->before_count, history->before_capacity))
        history->no_memory = true;
    else
        history->before[history->before_count++] = before;
}

/* Keep what MAP has from FIRST to END: the pieces, and that there was nothing else. */
static void keep_before(struct address_history *history, const struct address_map *map,
                        uint64_t first, uint64_t end)
{
    bool is_last = map == &history->last;
    struct address_place place;
    const struct address_range *range = address_map_find(map, first, &place);
    for (; range && range->start < end; range = address_map_next(map, &place)) {
        struct address_range piece = *range;
        piece.start = piece.start > first ? piece.start : first;
        piece.end = piece.end < end ? piece.end : end;
        keep(history, (struct address_before){piece, is_last, true});
    }
    keep(history, (struct address_before){{first, end, 0}, is_last, false});
}

static void set(struct address_history *history, struct address_map *map, uint64_t first,
                uint64_t end, enum address_state state)
{
    history->changes++;
    if (history->visits > 1)
        keep_before(history, map, first, end);
    if (address_map_join(map, first, end, state))
        history->no_memory = true;
}

/* The same.  It mostly is NEAR or a few behind: a change has few of the addresses, and most code
 * lies behind that of the last change. */
static size_t first_from_near(const struct address_history *history, size_t near, uint64_t addr)
{
    enum { FEW = 8 };
    if (near && history->asked[near - 1] >= addr)
        return first_from(history, addr);
    for (size_t i = 0; i < FEW; i++, near++)
        if (near == history->count || history->asked[near] >= addr)
            return near;
    return first_from(history, addr);
}

static void show(struct address_history *history, uint64_t start, uint64_t end,
                 enum address_state state)
{
    size_t first = first_from_near(history, history->behind, start);
    size_t behind = first_from_near(history, first, end);
    history->behind = behind;
    if (first >= behind)
        return;
    set(history, &history->shown, first, behind, state);
    if (state == ADDRESS_FUNCTION || state == ADDRESS_GONE)
        set(history, &history->last, first, behind, state);
}

static void show_map(struct address_history *history, const struct history_part *part,
                     const struct recorded_map *map)
{
    if (timeline_drops(part->timeline, map->record.offset) || jit_dump_has_name(map->map.filename))
        return;
    bool moved = map->text && !part->timeline;
    bool memory = !moved && (perf_map_is_memory(&map->map) || may_be_arena(part, &map->map));
    show(history, map->map.start, map->map.start + map->map.len,
         memory ? ADDRESS_MEMORY : ADDRESS_FILE);
}

/* ---- Changes ---- */

static void show_change(struct address_history *history, const struct history_part *part,
                        const struct change *change)
{
    bool is_map = change->kind == CHANGE_MAP;
    bool is_file = is_map && !perf_map_is_memory(&part->process->maps[change->index].map);
    enum address_state state = change->kind == CHANGE_FUNCTION ? ADDRESS_FUNCTION
                               : !is_map                       ? ADDRESS_GONE
                               : is_file                       ? ADDRESS_FILE
                                                               : ADDRESS_MEMORY;
    show(history, change->start, change->end, state);
}

/* If a change and a mapping have the same time, the change comes first, as it does in the
 * output. */
void address_history_play(struct address_history *history, struct history_part *part,
                          uint64_t time_ns)
{
    if (time_ns < part->next_ns)
        return;
    size_t change_count = part->timeline ? part->timeline->change_count : 0;
    for (;;) {
        uint64_t change_ns = part->change < change_count
                                 ? part->timeline->changes[part->change].time_ns
                                 : UINT64_MAX;
        uint64_t map_ns = part->map < part->map_count ? part->maps[part->map].time_ns : UINT64_MAX;
        bool change_next = part->change < change_count && change_ns <= map_ns;
        bool map_next = !change_next && part->map < part->map_count;
        part->next_ns = change_next ? change_ns : map_next ? map_ns : UINT64_MAX;
        if ((!change_next && !map_next) || part->next_ns > time_ns)
            return;
        if (change_next)
            show_change(history, part, &part->timeline->changes[part->change++]);
        else
            show_map(history, part, &part->maps[part->map++]);
    }
}

/* ---- A history ---- */

int address_history_begin(struct address_history *history, const uint64_t *asked, size_t count)
{
    *history = (struct address_history){.asked = asked, .count = count, .changes = 1};
    history->known = calloc(count + 1, sizeof *history->known);
    return history->known ? 0 : -1;
}

size_t address_history_enter(struct address_history *history)
{
    history->visits++;
    return history->before_count;
}

static void undo(struct address_history *history, const struct address_before *before)
{
    struct address_map *map = before->is_last ? &history->last : &history->shown;
    const struct address_range *range = &before->range;
    history->changes++;
    if (before->was_set ? address_map_set(map, range->start, range->end, range->value)
                        : address_map_clear(map, range->start, range->end))
        history->no_memory = true;
}

void address_history_leave(struct address_history *history, size_t mark)
{
    while (history->before_count > mark)
        undo(history, &history->before[--history->before_count]);
    if (--history->visits)
        return;
    history->changes++;
    address_map_free(&history->shown);
    address_map_free(&history->last);
}

static uint8_t state_in(const struct address_map *map, size_t number)
{
    const struct address_range *range = address_map_at(map, number);
    return range ? (uint8_t)range->value : ADDRESS_NOTHING;
}

/* Code that is shown is the last change of code as well. */
static struct address_facts find_facts(const struct address_history *history, size_t number)
{
    uint8_t shown = state_in(&history->shown, number);
    bool is_covered = shown == ADDRESS_FILE || shown == ADDRESS_MEMORY;
    return (struct address_facts){shown, is_covered ? state_in(&history->last, number) : shown};
}

struct address_facts address_history_facts(struct address_history *history, size_t number)
{
    struct known_facts *known = &history->known[number];
    if (known->changes != history->changes)
        *known = (struct known_facts){history->changes, find_facts(history, number)};
    return known->facts;
}

void address_history_end(struct address_history *history)
{
    address_map_free(&history->shown);
    address_map_free(&history->last);
    free(history->before);
    free(history->known);
    *history = (struct address_history){0};
}
