/* A map from numbers to numbers: what was last put for a key.  Nothing is taken out. */
#ifndef PERFJIT_NUMBER_MAP_H
#define PERFJIT_NUMBER_MAP_H

#include <stddef.h>
#include <stdint.h>

#define NUMBER_MAP_NOTHING UINT32_MAX

struct number_map_place;

struct number_map {
    struct number_map_place *places;
    size_t size, count; /* a power of two; at most half of them are taken */
};

/* Put VALUE, not NUMBER_MAP_NOTHING, for KEY.  Returns 0, or -1 without memory. */
int number_map_put(struct number_map *map, uint64_t key, uint32_t value);

/* The value of KEY, which is VALUE if there was none yet; NUMBER_MAP_NOTHING without memory. */
uint32_t number_map_add(struct number_map *map, uint64_t key, uint32_t value);

/* The value of KEY, or NUMBER_MAP_NOTHING. */
uint32_t number_map_get(const struct number_map *map, uint64_t key);

void number_map_free(struct number_map *map);

#endif
