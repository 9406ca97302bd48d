/* See address_map.h. */
#include "injector/arrays/address_map.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"

#include <string.h>

/* The range at PLACE, or NULL behind all. */
static struct address_range *range_at(const struct address_map *map,
                                      const struct address_place *place)
{
    if (place->leaf == map->count)
        return NULL;
    return &map->leaves[place->leaf]->ranges[place->slot];
}

static uint64_t end_of(const struct address_leaf *leaf)
{
    return leaf->ranges[leaf->count - 1].end;
}

static size_t find_leaf(const struct address_map *map, uint64_t addr)
{
    size_t first;
    array_bisect(first, map->count, end_of(map->leaves[first]) <= addr);
    return first;
}

static size_t find_slot(const struct address_leaf *leaf, uint64_t addr)
{
    size_t first;
    array_bisect(first, leaf->count, leaf->ranges[first].end <= addr);
    return first;
}

/* Allocators mostly go upwards. */
static bool lies_after_all(const struct address_map *map, uint64_t addr)
{
    return map->count == 0 || end_of(map->leaves[map->count - 1]) <= addr;
}

const struct address_range *address_map_find(const struct address_map *map, uint64_t addr,
                                             struct address_place *place)
{
    if (lies_after_all(map, addr)) {
        *place = (struct address_place){map->count, 0};
        return NULL;
    }
    place->leaf = find_leaf(map, addr);
    place->slot = place->leaf == map->count ? 0 : find_slot(map->leaves[place->leaf], addr);
    return range_at(map, place);
}

const struct address_range *address_map_at(const struct address_map *map, uint64_t addr)
{
    struct address_place place;
    const struct address_range *range = address_map_find(map, addr, &place);
    return range && range->start <= addr ? range : NULL;
}

/* Whether the first range that ends after ADDR is in leaf number AT. */
static bool is_leaf_of(const struct address_map *map, size_t at, uint64_t addr)
{
    return at < map->count && end_of(map->leaves[at]) > addr &&
           (at == 0 || end_of(map->leaves[at - 1]) <= addr);
}

static size_t find_slot_near(const struct address_leaf *leaf, size_t slot, uint64_t addr)
{
    for (size_t at = slot; at < leaf->count && at < slot + 2; at++)
        if (leaf->ranges[at].end > addr && (at == 0 || leaf->ranges[at - 1].end <= addr))
            return at;
    return find_slot(leaf, addr);
}

const struct address_range *address_map_find_near(const struct address_map *map, uint64_t addr,
                                                  struct address_place *place)
{
    size_t leaf = place->leaf, slot = place->slot;
    if (!is_leaf_of(map, leaf, addr)) {
        slot = 0;
        if (!is_leaf_of(map, ++leaf, addr))
            return address_map_find(map, addr, place);
    }
    place->slot = find_slot_near(map->leaves[leaf], slot, addr);
    place->leaf = leaf;
    return range_at(map, place);
}

const struct address_range *address_map_next(const struct address_map *map,
                                             struct address_place *place)
{
    if (place->leaf == map->count)
        return NULL;
    if (++place->slot == map->leaves[place->leaf]->count) {
        place->leaf++;
        place->slot = 0;
    }
    return range_at(map, place);
}

bool address_map_meets(const struct address_map *map, uint64_t start, uint64_t end)
{
    struct address_place place;
    const struct address_range *range = address_map_find(map, start, &place);
    return range && range->start < end;
}

static int insert_leaf(struct address_map *map, size_t at)
{
    if (array_reserve(map->leaves, map->count, map->capacity))
        return -1;
    struct address_leaf **leaves = map->leaves;
    struct address_leaf *leaf = malloc(sizeof *leaf);
    if (!leaf)
        return -1;
    leaf->count = 0;
    memmove(leaves + at + 1, leaves + at, (map->count - at) * sizeof(struct address_leaf *));
    leaves[at] = leaf;
    map->count++;
    return 0;
}

/* Make room in the full leaf at *PLACE: its upper part becomes a leaf of its own.  A leaf that is
 * filled at its end, as an allocator that goes upwards does, stays full. */
static int split_leaf(struct address_map *map, struct address_place *place)
{
    if (insert_leaf(map, place->leaf + 1))
        return -1;
    struct address_leaf *lower = map->leaves[place->leaf], *upper = map->leaves[place->leaf + 1];
    size_t keep = place->slot == lower->count ? lower->count - 1 : lower->count / 2;
    upper->count = lower->count - keep;
    memcpy(upper->ranges, lower->ranges + keep, upper->count * sizeof *upper->ranges);
    lower->count = keep;
    if (place->slot > keep) {
        place->leaf++;
        place->slot -= keep;
    }
    return 0;
}

/* Insert a range that starts at or after the end of the place's predecessor; a place past all
 * leaves means the end of the last leaf. */
static int insert(struct address_map *map, struct address_place place, struct address_range range)
{
    if (place.leaf == map->count) {
        if (map->count == 0 && insert_leaf(map, 0))
            return -1;
        place.leaf = map->count - 1;
        place.slot = map->leaves[place.leaf]->count;
    }
    if (map->leaves[place.leaf]->count == ADDRESS_LEAF_RANGES && split_leaf(map, &place))
        return -1;
    struct address_leaf *leaf = map->leaves[place.leaf];
    memmove(leaf->ranges + place.slot + 1, leaf->ranges + place.slot,
            (leaf->count - place.slot) * sizeof range);
    leaf->ranges[place.slot] = range;
    leaf->count++;
    return 0;
}

static void erase(struct address_map *map, const struct address_place *place)
{
    struct address_leaf *leaf = map->leaves[place->leaf];
    leaf->count--;
    memmove(leaf->ranges + place->slot, leaf->ranges + place->slot + 1,
            (leaf->count - place->slot) * sizeof *leaf->ranges);
    if (leaf->count)
        return;
    free(leaf);
    map->count--;
    memmove(map->leaves + place->leaf, map->leaves + place->leaf + 1,
            (map->count - place->leaf) * sizeof(struct address_leaf *));
}

/* Remove [START, END) from all ranges; *PLACE is then where a range of these addresses goes. */
static int make_room(struct address_map *map, uint64_t start, uint64_t end,
                     struct address_place *place)
{
    while (address_map_find(map, start, place)) {
        struct address_range *range = range_at(map, place);
        struct address_range before = *range;
        if (before.start >= end)
            return 0;
        if (before.start < start && before.end > end) {
            range->start = end;
            before.end = start;
            if (insert(map, *place, before))
                return -1;
        } else if (before.start < start) {
            range->end = start;
        } else if (before.end > end) {
            range->start = end;
        } else {
            erase(map, place);
        }
    }
    return 0;
}

int address_map_clear(struct address_map *map, uint64_t start, uint64_t end)
{
    struct address_place place;
    return make_room(map, start, end, &place);
}

/* Append RANGE if it lies after all others and there is room. Returns false if not. */
static bool append(struct address_map *map, struct address_range range)
{
    struct address_leaf *last = map->count ? map->leaves[map->count - 1] : NULL;
    if (!last || last->count == ADDRESS_LEAF_RANGES || end_of(last) > range.start)
        return false;
    last->ranges[last->count++] = range;
    return true;
}

int address_map_set(struct address_map *map, uint64_t start, uint64_t end, uint32_t value)
{
    if (start >= end || append(map, (struct address_range){start, end, value}))
        return 0;
    struct address_place place;
    if (make_room(map, start, end, &place))
        return -1;
    return insert(map, place, (struct address_range){start, end, value});
}

/* Whether one range has all of [START, END) and VALUE. */
static bool has_all(const struct address_map *map, uint64_t start, uint64_t end, uint32_t value)
{
    const struct address_range *range = address_map_at(map, start);
    return range && range->end >= end && range->value == value;
}

/* The range in front of PLACE, or NULL. */
static struct address_range *range_below(const struct address_map *map, struct address_place place)
{
    if (place.slot)
        return &map->leaves[place.leaf]->ranges[place.slot - 1];
    struct address_leaf *leaf = place.leaf ? map->leaves[place.leaf - 1] : NULL;
    return leaf ? &leaf->ranges[leaf->count - 1] : NULL;
}

int address_map_join(struct address_map *map, uint64_t start, uint64_t end, uint32_t value)
{
    struct address_place place;
    if (start >= end || has_all(map, start, end, value))
        return 0;
    if (make_room(map, start, end, &place))
        return -1;
    struct address_range *above = range_at(map, &place), *below = range_below(map, place);
    bool joins_above = above && above->start == end && above->value == value;
    bool joins_below = below && below->end == start && below->value == value;
    if (joins_below)
        below->end = joins_above ? above->end : end;
    if (joins_above && !joins_below)
        above->start = start;
    else if (joins_above)
        erase(map, &place);
    return joins_below || joins_above
               ? 0
               : insert(map, place, (struct address_range){start, end, value});
}

void address_map_free(struct address_map *map)
{
    for (size_t i = 0; i < map->count; i++)
        free(map->leaves[i]);
    free(map->leaves);
    *map = (struct address_map){0};
}
