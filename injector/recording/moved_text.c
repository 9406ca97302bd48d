/* See moved_text.h. */
#include "injector/recording/moved_text.h"

#include "injector/arrays/address_map.h"

enum { HUGE_PAGE_BYTES = 2 << 20, MOST_PIECES = 16 };

struct search {
    struct recorded_map *maps; /* of one life */
    size_t count;
    struct address_map mapped; /* numbers of MAPS */
    const struct recorded_map *program;
};

static bool is_file(const struct perf_map *map)
{
    return map->filename[0] == '/' && !perf_map_is_memory(map) && !perf_map_is_shared_memory(map);
}

static bool is_text(const struct perf_map *map)
{
    return is_file(map) && !map->data;
}

/* Whether B continues A: the same file, as far from its begin. */
static bool goes_on(const struct perf_map *a, const struct perf_map *b)
{
    return a->start - a->pgoff == b->start - b->pgoff && perf_map_compare_files(a, b) == 0;
}

/* The map at ADDR, with the end of its part in *END; NULL: there is none. */
static const struct recorded_map *map_at(const struct search *search, uint64_t addr, uint64_t *end)
{
    const struct address_range *range = address_map_at(&search->mapped, addr);
    if (!range)
        return NULL;
    *end = range->end;
    return &search->maps[range->value];
}

/* The text that is at all addresses of MAP so far; NULL: it is not all of one file. */
static const struct recorded_map *text_under(const struct search *search,
                                             const struct perf_map *map)
{
    const struct recorded_map *first = NULL;
    uint64_t at = map->start;
    for (int i = 0; i < MOST_PIECES && at < map->start + map->len; i++) {
        const struct recorded_map *piece = map_at(search, at, &at);
        if (!piece || !is_text(&piece->map) || (first && !goes_on(&first->map, &piece->map)))
            return NULL;
        first = first ? first : piece;
    }
    return at < map->start + map->len ? NULL : first;
}

/* The file in front of MAP that goes on behind it; NULL: there is none. */
static const struct recorded_map *text_around(const struct search *search,
                                              const struct perf_map *map)
{
    uint64_t end;
    const struct recorded_map *before = map->start ? map_at(search, map->start - 1, &end) : NULL;
    const struct recorded_map *behind = map_at(search, map->start + map->len, &end);
    return before && behind && is_file(&before->map) && is_file(&behind->map) &&
                   goes_on(&before->map, &behind->map)
               ? before
               : NULL;
}

static bool is_of_program(const struct search *search, const struct recorded_map *text)
{
    return search->program && perf_map_compare_files(&text->map, &search->program->map) == 0;
}

static bool may_be_moved(const struct perf_map *map, const struct recorded_map *text)
{
    bool is_huge = map->start % HUGE_PAGE_BYTES == 0 && map->len % HUGE_PAGE_BYTES == 0;
    bool is_whole = map->start == text->map.start && map->len == text->map.len;
    return is_huge || is_whole;
}

static void take_text(const struct search *search, struct recorded_map *map,
                      const struct recorded_map *text, bool is_gap)
{
    bool stays = text && is_of_program(search, text);
    if (!text || !(stays || may_be_moved(&map->map, text)))
        return;
    map->text = text;
    map->text_stays = stays;
    map->text_gap = is_gap;
}

static int add_map(struct search *search, struct recorded_map *map)
{
    if (perf_map_is_anonymous(&map->map) && map->map.len)
        take_text(search, map, text_under(search, &map->map), false);
    if (map->text)
        return 0;
    if (!search->program && is_text(&map->map))
        search->program = map;
    return address_map_set(&search->mapped, map->map.start, map->map.start + map->map.len,
                           (uint32_t)(map - search->maps));
}

/* The maps from FIRST on that are of one time, as those that perf took from /proc: what is behind a
 * map may come after it.  Returns how many they are, or 0 without memory. */
static size_t add_moment(struct search *search, size_t first)
{
    size_t end = first;
    for (; end < search->count && search->maps[end].time_ns == search->maps[first].time_ns; end++)
        if (add_map(search, &search->maps[end]))
            return 0;
    for (size_t i = first; i < end; i++) {
        struct recorded_map *map = &search->maps[i];
        if (!map->text && perf_map_is_anonymous(&map->map) && map->map.len)
            take_text(search, map, text_around(search, &map->map), true);
    }
    return end - first;
}

static int search_life(struct records *records, const struct process_life *life)
{
    struct search search = {.program = NULL};
    const struct recorded_map *maps =
        process_life_maps(records, life->pid, life->begin, life->next, &search.count);
    search.maps = records->maps + (maps - records->maps);
    size_t at = 0, added = 1;
    for (; at < search.count && added; at += added)
        added = add_moment(&search, at);
    address_map_free(&search.mapped);
    return added ? 0 : -1;
}

int moved_text_find(struct records *records, const struct process_lives *lives,
                    struct findings *findings)
{
    for (size_t i = 0; i < lives->count; i++)
        if (search_life(records, &lives->items[i]))
            return report_failure(findings, "out of memory");
    return 0;
}
