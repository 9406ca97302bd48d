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

static bool is_dropped(const struct history_part *part, const struct recorded_map *map)
{
    const struct timeline *timeline = part->timeline;
    size_t at, count = timeline ? timeline->dropped_count : 0;
    array_bisect(at, count, timeline->dropped[at] < map->record.offset);
    return at < count && timeline->dropped[at] == map->record.offset;
}

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

/* Keep the entry at PLACE as it is, unless this visit has done so. */
static bool keep_before(struct address_history *history, size_t place)
{
    struct address_entry *entry = &history->entries[place];
    if (entry->visit == history->visit)
        return true;
    if (array_reserve(history->before, history->before_count, history->before_capacity)) {
        history->no_memory = true;
        return false;
    }
    history->before[history->before_count++] = (struct address_before){place, *entry};
    entry->visit = history->visit;
    return true;
}

static void show(struct address_history *history, uint64_t start, uint64_t end,
                 enum address_state state)
{
    bool of_code = state == ADDRESS_FUNCTION || state == ADDRESS_GONE;
    for (size_t i = first_from(history, start); i < history->count && history->asked[i] < end;
         i++) {
        if (!keep_before(history, i))
            return;
        history->entries[i].facts.shown = (uint8_t)state;
        if (of_code)
            history->entries[i].facts.last = (uint8_t)state;
    }
}

static void show_map(struct address_history *history, const struct history_part *part,
                     const struct recorded_map *map)
{
    if (is_dropped(part, map) || jit_dump_has_name(map->map.filename))
        return;
    bool memory = perf_map_is_memory(&map->map) || may_be_arena(part, &map->map);
    show(history, map->map.start, map->map.start + map->map.len,
         memory ? ADDRESS_MEMORY : ADDRESS_FILE);
}

/* ---- Changes ---- */

static void show_change(struct address_history *history, const struct change *change)
{
    enum address_state state = change->kind == CHANGE_FUNCTION   ? ADDRESS_FUNCTION
                               : change->kind == CHANGE_UNLOADED ? ADDRESS_GONE
                                                                 : ADDRESS_MEMORY;
    show(history, change->start, change->end, state);
}

/* If a change and a mapping have the same time, the change comes first, as it does in the
 * output. */
void address_history_play(struct address_history *history, struct history_part *part,
                          uint64_t time_ns)
{
    size_t change_count = part->timeline ? part->timeline->change_count : 0;
    for (;;) {
        uint64_t change_ns = part->change < change_count
                                 ? part->timeline->changes[part->change].time_ns
                                 : UINT64_MAX;
        uint64_t map_ns = part->map < part->map_count ? part->maps[part->map].time_ns : UINT64_MAX;
        bool change_next = part->change < change_count && change_ns <= map_ns;
        bool map_next = !change_next && part->map < part->map_count;
        if ((!change_next && !map_next) || (change_next ? change_ns : map_ns) > time_ns)
            return;
        if (change_next)
            show_change(history, &part->timeline->changes[part->change++]);
        else
            show_map(history, part, &part->maps[part->map++]);
    }
}

/* ---- A history ---- */

int address_history_begin(struct address_history *history, const uint64_t *asked, size_t count)
{
    *history = (struct address_history){.asked = asked, .count = count};
    history->entries = calloc(count + 1, sizeof *history->entries);
    return history->entries ? 0 : -1;
}

struct address_mark address_history_enter(struct address_history *history)
{
    struct address_mark mark = {history->before_count, history->visit};
    history->visit = ++history->last_visit;
    return mark;
}

void address_history_leave(struct address_history *history, struct address_mark mark)
{
    while (history->before_count > mark.before_count) {
        const struct address_before *before = &history->before[--history->before_count];
        history->entries[before->place] = before->entry;
    }
    history->visit = mark.visit;
}

size_t address_history_find(const struct address_history *history, uint64_t addr)
{
    return first_from(history, addr);
}

void address_history_end(struct address_history *history)
{
    free(history->entries);
    free(history->before);
    *history = (struct address_history){0};
}
