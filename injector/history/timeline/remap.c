/* The profile's own mappings in a timeline: see timeline.h.
 *
 * A mapping over live JIT code is one of two things.  It is the arena itself, logged again because
 * the runtime flipped its protection or let it grow.  Or it is something else that took the code's
 * place.  An munmap is not recorded, so only the new mapping shows which of the two it is:
 *
 *   memory by its name        the arena.  A JIT's memory has no other content to be mapped.
 *   a file                    the arena if it is the file that was there, with the same offset at
 *                             the same address: a runtime that maps its memory twice (W^X) has it
 *                             in a file.  If nothing was recorded there before, the memory was not
 *                             executable yet when the code was logged, and is now: the arena, be it
 *                             the program's own .data.  But code with a stamp from before the
 *                             process began may be an earlier program's, and from before the
 *                             recording, freed: of that only a file in /dev/shm and a deleted one
 *                             are the arena.
 *   any other file            the end of the code.
 *
 * Memory over a file's text may still be that text, moved (moved_text.h).  Its record would hide
 * the file's names, and is dropped.
 */
#include "injector/history/timeline/player.h"
#include "injector/log/jitdump/dump_name.h"

#include "injector/arrays/array.h"

#include <string.h>
#include <sys/mman.h>

/* The same bytes at the same addresses. */
static bool is_same_file(const struct perf_map *a, const struct perf_map *b)
{
    if (a->pgoff - a->start != b->pgoff - b->start)
        return false;
    if (a->has_inode && b->has_inode)
        return a->maj == b->maj && a->min == b->min && a->ino == b->ino;
    size_t length = perf_map_name_length(a->filename);
    return length == perf_map_name_length(b->filename) &&
           strncmp(a->filename, b->filename, length) == 0;
}

/* Whether MAP, over live code, must be the memory that the code is in.  BEFORE, or NULL, is the
 * mapping that was there before. */
static bool is_arena(const struct perf_map *map, const struct recorded_map *before)
{
    if (perf_map_is_memory(map))
        return true;
    if (!before)
        return perf_map_is_shared_memory(map);
    return is_same_file(map, &before->map);
}

/* Whether an earlier mapping BEFORE is of the same memory as MAP. */
static bool is_same_memory(const struct perf_map *map, const struct recorded_map *before)
{
    return perf_map_is_memory(map) ? perf_map_is_memory(&before->map)
                                   : is_same_file(map, &before->map);
}

int player_set_backed(struct player *player, uint64_t start, uint64_t end,
                      const struct recorded_map *map)
{
    if (array_reserve(player->mappings, player->mapping_count, player->mapping_capacity) ||
        player->mapping_count >= UINT32_MAX)
        return -1;
    player->mappings[player->mapping_count] = map;
    return address_map_set(&player->backed, start, end, (uint32_t)player->mapping_count++);
}

/* Note that [START, END) was mapped at TIME_NS. */
static int set_mapped_since(struct player *player, uint64_t start, uint64_t end, uint64_t time_ns)
{
    if (array_reserve(player->times, player->time_count, player->time_capacity) ||
        player->time_count >= UINT32_MAX)
        return -1;
    player->times[player->time_count] = time_ns;
    return address_map_set(&player->mapped_since, start, end, (uint32_t)player->time_count++);
}

static int drop_record(struct timeline *timeline, uint64_t offset)
{
    if (array_reserve(timeline->dropped, timeline->dropped_count, timeline->dropped_capacity))
        return -1;
    timeline->dropped[timeline->dropped_count++] = offset;
    return 0;
}

/* Add the part [START, END) of mapping INDEX again, but for the live code in it and the alignment
 * in between. */
static int restore_part(struct player *player, uint32_t index, uint64_t start, uint64_t end)
{
    const struct recorded_map *map = &player->process->maps[index];
    const uint64_t first = start;
    struct address_place place;
    const struct address_range *range = address_map_find(&player->owners, start, &place);
    while (start < end) {
        uint64_t stop = range && range->start < end ? range->start : end;
        struct change part = {map->time_ns, start, stop, CHANGE_MAP, index};
        bool alignment = stop - start <= CODE_GAP_BYTES && start != first && stop != end;
        if (start < stop && !alignment &&
            (player_end_moment(player) || player_add_change(player, part)))
            return -1;
        start = range && range->end < end ? range->end : end;
        if (stop == end)
            return 0;
        range = address_map_next(&player->owners, &place);
    }
    return 0;
}

/* The next part of MAP from *STOP on that no earlier mapping of the same memory covered, into
 * *START and *STOP.  Returns false if there is none. */
static bool next_new_part(const struct player *player, const struct perf_map *map, uint64_t *start,
                          uint64_t *stop)
{
    const uint64_t end = map->start + map->len;
    struct address_place place;
    const struct address_range *range = address_map_find(&player->backed, *stop, &place);
    *start = *stop;
    for (; range && range->start < end; range = address_map_next(&player->backed, &place)) {
        if (!is_same_memory(map, player->mappings[range->value]))
            continue;
        if (range->start > *start)
            break;
        *start = range->end;
    }
    *stop = range && range->start < end ? range->start : end;
    return *start < *stop;
}

/* The record of mapping INDEX is dropped.  Add again those of its addresses that no earlier mapping
 * of the same memory covered. */
static int restore_new_parts(struct player *player, uint32_t index)
{
    const struct perf_map *map = &player->process->maps[index].map;
    uint64_t start, stop = map->start;
    while (next_new_part(player, map, &start, &stop))
        if (restore_part(player, index, start, stop))
            return -1;
    return 0;
}

/* The end of the live code in [START, END): a file took its place. */
static int end_code(struct player *player, uint64_t start, uint64_t end)
{
    return player_end_moment(player) || address_map_clear(&player->owners, start, end) ? -1 : 0;
}

/* From when on the recording has the process's mappings: from its beginning, or, of one that was
 * there before, from the first sample.  Memory that was executable before that, and still was then,
 * is in the records that perf record wrote. */
static uint64_t maps_known_ns(const struct player *player)
{
    uint64_t begin_ns = player->process->begin.time_ns;
    return begin_ns || !player->sample_count ? begin_ns : player->sample_times_ns[0];
}

void player_note_before_maps(struct player *player, uint64_t time_ns, uint32_t function)
{
    player->timeline->states[function].before_maps = time_ns < maps_known_ns(player);
}

/* The end of the code in [START, END) from before the maps are known: none was recorded there, and
 * one of a file is now. */
static int end_before_maps(struct player *player, uint64_t start, uint64_t end)
{
    struct address_place place;
    const struct address_range *range = address_map_find(&player->owners, start, &place);
    while (range && range->start < end) {
        uint64_t from = range->start > start ? range->start : start;
        uint64_t to = range->end < end ? range->end : end;
        if (!player->timeline->states[range->value].before_maps) {
            range = address_map_next(&player->owners, &place);
            continue;
        }
        if (end_code(player, from, to))
            return -1;
        range = address_map_find(&player->owners, to, &place);
    }
    return 0;
}

/* End the code at addresses where MAP replaces the memory that it was in. */
static int end_replaced(struct player *player, const struct perf_map *map)
{
    uint64_t start = map->start, end = map->start + map->len;
    while (start < end) {
        struct address_place place;
        const struct address_range *range = address_map_find(&player->backed, start, &place);
        bool known = range && range->start <= start;
        uint64_t stop = !range || range->start >= end ? end : known ? range->end : range->start;
        stop = stop < end ? stop : end;
        if (address_map_meets(&player->owners, start, stop) &&
            !is_arena(map, known ? player->mappings[range->value] : NULL) &&
            (known ? end_code(player, start, stop) : end_before_maps(player, start, stop)))
            return -1;
        start = stop;
    }
    return 0;
}

static int note_late(struct player *player, uint32_t index)
{
    if (array_reserve(player->late, player->late_count, player->late_capacity))
        return -1;
    player->late[player->late_count++] = index;
    return 0;
}

/* A reader takes such a mapping at its place in the file, between two rounds of records.  The
 * mapping then hides the code that the reader has by then.  In perf the code is back only when it
 * is loaded anew. */
int player_place_late(struct player *player)
{
    for (size_t i = 0; i < player->late_count; i++) {
        const struct recorded_map *map = &player->process->maps[player->late[i]];
        uint64_t start = map->map.start, end = map->map.start + map->map.len;
        struct change change = {map->time_ns, start, end, CHANGE_MAP, player->late[i]};
        if (address_map_meets(&player->shown, start, end) &&
            (drop_record(player->timeline, map->record.offset) ||
             player_add_early_change(player, change)))
            return -1;
    }
    return 0;
}

static int read_logged(struct player *player)
{
    const struct code_log *log = player->timeline->log;
    player->logged_read = true;
    for (size_t i = 0; i < log->function_count; i++)
        if (address_map_set(&player->logged, log->functions[i].addr,
                            log->functions[i].addr + log->functions[i].size, 0))
            return -1;
    return 0;
}

/* MAP is text that was moved. */
static int play_text(struct player *player, const struct recorded_map *map)
{
    uint64_t start = map->map.start, end = map->map.start + map->map.len;
    uint32_t text = (uint32_t)(map->text - player->process->maps);
    struct change change = {map->time_ns, start, end, CHANGE_MAP, text};
    if (drop_record(player->timeline, map->record.offset))
        return -1;
    return map->text_gap && (player_end_moment(player) || player_add_change(player, change) ||
                             player_set_backed(player, start, end, map->text))
               ? -1
               : 0;
}

/* Note since when MAP is mapped.  Where unloads are in time, these are its new parts alone: the
 * kernel joins memory that grows, and tells of all of it.  What was sampled in the others before is
 * shown anew then. */
static int set_grown_since(struct player *player, const struct recorded_map *map)
{
    uint64_t start = map->map.start, stop = start;
    if (!player->process->unloads_in_time)
        return set_mapped_since(player, start, start + map->map.len, map->time_ns + 1);
    if (array_reserve(player->grown, player->grown_count, player->grown_capacity))
        return -1;
    player->grown[player->grown_count++] = map;
    while (next_new_part(player, &map->map, &start, &stop))
        if (set_mapped_since(player, start, stop, map->time_ns + 1))
            return -1;
    return 0;
}

int player_play_map(struct player *player, uint32_t index)
{
    const struct recorded_map *map = &player->process->maps[index];
    uint64_t start = map->map.start, end = map->map.start + map->map.len;
    if (jit_dump_has_name(map->map.filename) || start == end)
        return 0;
    if (map->text && !map->text_stays && !player->logged_read && read_logged(player))
        return -1;
    if (map->text && (map->text_stays || !address_map_meets(&player->logged, start, end)))
        return play_text(player, map);
    if (end_replaced(player, &map->map))
        return -1;
    bool drop = address_map_meets(&player->owners, start, end); /* it would hide live code */
    if (drop ? drop_record(player->timeline, map->record.offset) || restore_new_parts(player, index)
             : player_end_moment(player) || (map->late && note_late(player, index)))
        return -1;
    return set_grown_since(player, map) || player_set_backed(player, start, end, map) ? -1 : 0;
}
