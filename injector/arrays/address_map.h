/* A map from address ranges to numbers: the owner of each address at one moment.
 *
 * Ranges are half open, [start, end), never empty and never overlap.  Setting a range takes its
 * addresses from their owners and leaves the rest of the owners' ranges in place.
 *
 *     0        10        20        30
 *     |--- 7 ---|         |--- 9 ---|
 *           set [5, 25) to 8
 *     |-7-|-------- 8 --------|--9--|
 *
 * The ranges stand sorted in leaves of at most ADDRESS_LEAF_RANGES, the leaves sorted in one array:
 * a look-up is two binary searches, a change moves at most one leaf's worth of ranges.  A caller
 * that looks up ascending addresses keeps the place: the next one mostly is in the same leaf or the
 * next.
 */
#ifndef PERFJIT_ADDRESS_MAP_H
#define PERFJIT_ADDRESS_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ADDRESS_LEAF_RANGES = 64 };

struct address_range {
    uint64_t start, end;
    uint32_t value;
};

struct address_leaf {
    size_t count; /* at least 1 */
    struct address_range ranges[ADDRESS_LEAF_RANGES];
};

struct address_map {
    struct address_leaf **leaves;
    size_t count, capacity;
};

/* A place in the map; any change of the map makes it invalid, but for address_map_find_near. */
struct address_place {
    size_t leaf, slot;
};

/* The first range that ends after ADDR, or NULL; *PLACE is its place. */
const struct address_range *address_map_find(const struct address_map *map, uint64_t addr,
                                             struct address_place *place);

/* The range that has ADDR, or NULL. */
const struct address_range *address_map_at(const struct address_map *map, uint64_t addr);

/* As address_map_find, looked for from *PLACE on first, which an earlier look-up in this map gave,
 * or all zeros. */
const struct address_range *address_map_find_near(const struct address_map *map, uint64_t addr,
                                                  struct address_place *place);

/* Whether any range has addresses in [START, END). */
bool address_map_meets(const struct address_map *map, uint64_t start, uint64_t end);

/* The range after *PLACE, or NULL. */
const struct address_range *address_map_next(const struct address_map *map,
                                             struct address_place *place);

/* Remove [START, END) from all ranges.  Returns 0, or -1 without memory. */
int address_map_clear(struct address_map *map, uint64_t start, uint64_t end);

/* Give [START, END), if it is not empty, to VALUE.  Returns 0, or -1 without memory. */
int address_map_set(struct address_map *map, uint64_t start, uint64_t end, uint32_t value);

/* As address_map_set, but neighbours with the same value become one range.  A map of few values
 * stays small then, however often it is set. */
int address_map_join(struct address_map *map, uint64_t start, uint64_t end, uint32_t value);

void address_map_free(struct address_map *map);

#endif
