/* See address_history.h. */
#include "injector/check/address_history.h"

#include "injector/jit/heritage.h"

#include <stdlib.h>
#include <string.h>

static int compare_offsets(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

static int copy_dropped(struct history_part *part)
{
    size_t count = part->timeline->dropped_count;
    part->dropped = malloc((count + 1) * sizeof *part->dropped);
    if (!part->dropped)
        return -1;
    if (count)
        memcpy(part->dropped, part->timeline->dropped, count * sizeof *part->dropped);
    qsort(part->dropped, count, sizeof *part->dropped, compare_offsets);
    return 0;
}

/* An arena may be a file in /dev/shm, or one that has been deleted. */
static bool is_named_like_arena(const struct perf_map *map)
{
    return strncmp(map->filename, "/dev/shm/", 9) == 0 || strstr(map->filename, " (deleted)");
}

static int find_code(struct history_part *part)
{
    const struct code_log *log = &part->process->log;
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
        matters = is_named_like_arena(&part->maps[i].map);
    return (matters && find_code(part)) || copy_dropped(part) ? -1 : 0;
}

void history_part_end(struct history_part *part)
{
    address_map_free(&part->code);
    free(part->dropped);
    part->dropped = NULL;
}

/* ---- Mappings ---- */

static bool is_dropped(const struct history_part *part, const struct profile_map *map)
{
    return part->process &&
           bsearch(&map->record.offset, part->dropped, part->timeline->dropped_count,
                   sizeof *part->dropped, compare_offsets);
}

/* If there is a function in it. */
static bool may_be_arena(const struct history_part *part, const struct perf_map *map)
{
    struct address_place place;
    const struct address_range *range = address_map_find(&part->code, map->start, &place);
    return is_named_like_arena(map) && range && range->start < map->start + map->len;
}

/* The first of the addresses that is not below ADDR. */
static size_t first_from(const struct address_history *history, uint64_t addr)
{
    size_t first = 0, end = history->count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (history->asked[middle] < addr)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

static void show(struct address_history *history, uint64_t start, uint64_t end,
                 enum address_state state)
{
    size_t first = first_from(history, start);
    if (first == history->count || history->asked[first] >= end)
        return;
    size_t count = first_from(history, end) - first;
    memset(history->shown + first, (int)state, count);
    if (state == ADDRESS_FUNCTION || state == ADDRESS_GONE)
        memset(history->last + first, (int)state, count);
}

static void show_map(struct address_history *history, const struct history_part *part,
                     const struct profile_map *map)
{
    if (is_dropped(part, map) || heritage_is_marker(map))
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

/* Of a change and a mapping of the same time the change comes first, as it does in the output. */
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
    history->shown = calloc(count + 1, 2);
    if (!history->shown)
        return -1;
    history->last = history->shown + count;
    return 0;
}

void address_history_inherit(struct address_history *history, const struct address_history *parent)
{
    for (size_t i = 0; i < history->count; i++) {
        size_t at = address_history_find(parent, history->asked[i]);
        history->shown[i] = parent->shown[at];
        history->last[i] = parent->last[at];
    }
}

size_t address_history_find(const struct address_history *history, uint64_t addr)
{
    return first_from(history, addr);
}

void address_history_end(struct address_history *history)
{
    free(history->shown);
    *history = (struct address_history){0};
}
