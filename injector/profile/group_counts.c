/* See group_counts.h. */
#include "injector/profile/group_counts.h"

#include "injector/arrays/hash.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

/* The entry of the key in WANTED, or the free one for it. */
static struct group_count *find(struct group_count *items, size_t capacity,
                                const struct group_count *wanted)
{
    size_t at = XXH3_64bits(&wanted->of, sizeof wanted->of) & (capacity - 1);
    while (items[at].used && memcmp(&items[at].of, &wanted->of, sizeof wanted->of) != 0)
        at = (at + 1) & (capacity - 1);
    return &items[at];
}

static int grow(struct group_counts *counts)
{
    if (counts->count * 2 < counts->capacity)
        return 0;
    size_t capacity = counts->capacity ? counts->capacity * 2 : FIRST_CAPACITY;
    struct group_count *items = calloc(capacity, sizeof *items);
    if (!items)
        return -1;
    for (size_t i = 0; i < counts->capacity; i++)
        if (counts->items[i].used)
            *find(items, capacity, &counts->items[i]) = counts->items[i];
    free(counts->items);
    counts->items = items;
    counts->capacity = capacity;
    return 0;
}

int group_counts_set(struct group_counts *counts, uint64_t id, uint32_t tid, uint64_t value,
                     uint64_t *grown)
{
    const struct group_count now = {{id, tid}, value, true};
    if (grow(counts))
        return -1;
    struct group_count *count = find(counts->items, counts->capacity, &now);
    counts->count += !count->used;
    *grown = value > count->value ? value - count->value : 0;
    *count = now;
    return 0;
}

void group_counts_free(struct group_counts *counts)
{
    free(counts->items);
    *counts = (struct group_counts){0};
}
