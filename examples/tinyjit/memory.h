/* Memory that is there, or the program ends: a compiler without memory has nothing better to do. */
#ifndef TINYJIT_MEMORY_H
#define TINYJIT_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline void *memory_or_exit(void *memory)
{
    if (memory)
        return memory;
    fprintf(stderr, "tinyjit: out of memory\n");
    exit(1);
}

/* COUNT items of ITEM_BYTES, all zero; to be freed with free(). */
static inline void *memory_new(size_t count, size_t item_bytes)
{
    return memory_or_exit(calloc(count ? count : 1, item_bytes));
}

/* Make room for item COUNT in the array ITEMS (of *CAPACITY items of ITEM_BYTES), and return the array. */
static inline void *array_room(void *items, size_t count, size_t *capacity, size_t item_bytes)
{
    if (count < *capacity)
        return items;
    size_t wanted = *capacity ? *capacity * 2 : 16;
    items = memory_or_exit(
        wanted > SIZE_MAX / 2 / item_bytes ? NULL : realloc(items, wanted * item_bytes));
    *capacity = wanted;
    return items;
}

#endif
