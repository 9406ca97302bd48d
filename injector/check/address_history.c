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

int history_part_begin(struct history_part *part)
{
    if (!part->process)
        return 0;
    const struct code_log *log = &part->process->log;
    for (size_t i = 0; i < log->function_count; i++)
        if (address_map_set(&part->code, log->functions[i].addr,
                            log->functions[i].addr + log->functions[i].size, 0))
            return -1;
    return copy_dropped(part);
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

/* An arena may be a file in /dev/shm, or one that has been deleted: if there is a function in it. */
static bool may_be_arena(const struct history_part *part, const struct perf_map *map)
{
    struct address_place place;
    const struct address_range *range = address_map_find(&part->code, map->start, &place);
    return (strncmp(map->filename, "/dev/shm/", 9) == 0 || strstr(map->filename, " (deleted)")) &&
           range && range->start < map->start + map->len;
}

static int show_map(struct address_history *history, const struct history_part *part,
                    const struct profile_map *map)
{
    if (is_dropped(part, map) || heritage_is_marker(map))
        return 0;
    bool memory = perf_map_is_memory(&map->map) || may_be_arena(part, &map->map);
    return address_map_set(&history->shown, map->map.start, map->map.start + map->map.len,
                           memory ? ADDRESS_MEMORY : ADDRESS_FILE);
}

/* ---- Changes ---- */

static int show_change(struct address_history *history, const struct change *change)
{
    enum address_state state = change->kind == CHANGE_FUNCTION   ? ADDRESS_FUNCTION
                               : change->kind == CHANGE_UNLOADED ? ADDRESS_GONE
                                                                 : ADDRESS_MEMORY;
    if (state != ADDRESS_MEMORY &&
        address_map_set(&history->last, change->start, change->end, state))
        return -1;
    return address_map_set(&history->shown, change->start, change->end, state);
}

/* Of a change and a mapping of the same time the change comes first, as it does in the output. */
int address_history_play(struct address_history *history, struct history_part *part,
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
            return 0;
        if (change_next ? show_change(history, &part->timeline->changes[part->change++])
                        : show_map(history, part, &part->maps[part->map++]))
            return -1;
    }
}

/* ---- Questions ---- */

static enum address_state state_at(const struct address_map *map, uint64_t addr)
{
    struct address_place place;
    const struct address_range *range = address_map_find(map, addr, &place);
    return range && range->start <= addr ? (enum address_state)range->value : ADDRESS_NOTHING;
}

enum address_state address_history_shown(const struct address_history *history, uint64_t addr)
{
    return state_at(&history->shown, addr);
}

enum address_state address_history_last(const struct address_history *history, uint64_t addr)
{
    return state_at(&history->last, addr);
}

void address_history_free(struct address_history *history)
{
    address_map_free(&history->shown);
    address_map_free(&history->last);
}
