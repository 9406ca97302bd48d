/* See number_map.h. */
#include "injector/arrays/number_map.h"

#include <stdlib.h>

enum { FIRST_SIZE = 1 << 10 };

struct number_map_place {
    uint64_t key;
    uint32_t behind; /* the value and one; 0: the place is free */
};

/* The highest bits of the product depend on all of the key. */
static struct number_map_place *place_of(const struct number_map *map, uint64_t key)
{
    size_t at = key * UINT64_C(0x9e3779b97f4a7c15) >> (__builtin_clzll(map->size) + 1);
    while (map->places[at].behind && map->places[at].key != key)
        at = (at + 1) & (map->size - 1);
    return &map->places[at];
}

static int grow(struct number_map *map)
{
    struct number_map larger = {.size = map->size ? map->size * 2 : FIRST_SIZE,
                                .count = map->count};
    larger.places = calloc(larger.size, sizeof *larger.places);
    if (!larger.places)
        return -1;
    for (size_t i = 0; i < map->size; i++)
        if (map->places[i].behind)
            *place_of(&larger, map->places[i].key) = map->places[i];
    free(map->places);
    *map = larger;
    return 0;
}

int number_map_put(struct number_map *map, uint64_t key, uint32_t value)
{
    if (map->count * 2 >= map->size && grow(map))
        return -1;
    struct number_map_place *place = place_of(map, key);
    map->count += !place->behind;
    *place = (struct number_map_place){key, value + 1};
    return 0;
}

uint32_t number_map_add(struct number_map *map, uint64_t key, uint32_t value)
{
    if (map->count * 2 >= map->size && grow(map))
        return NUMBER_MAP_NOTHING;
    struct number_map_place *place = place_of(map, key);
    if (!place->behind) {
        map->count++;
        *place = (struct number_map_place){key, value + 1};
    }
    return place->behind - 1;
}

uint32_t number_map_get(const struct number_map *map, uint64_t key)
{
    const struct number_map_place *place = map->size ? place_of(map, key) : NULL;
    return place && place->behind ? place->behind - 1 : NUMBER_MAP_NOTHING;
}

void number_map_free(struct number_map *map)
{
    free(map->places);
    *map = (struct number_map){0};
}
