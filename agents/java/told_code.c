/* See told_code.h. */
#include "agents/java/told_code.h"

#include "agents/java/array_room.h"

#include <string.h>

/* The number of the first range that ends behind ADDR. */
static size_t first_behind(const struct told_code *told, uint64_t addr)
{
    size_t low = 0, high = told->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (told->items[middle].end > addr)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

bool told_code_add(struct told_code *told, const struct told_range *range)
{
    struct told_range pieces[3];
    size_t piece_count = 0, first = first_behind(told, range->begin), behind = first;
    if (range->begin >= range->end)
        return false;
    struct told_range *items =
        array_with_room(told->items, told->count, 2, &told->capacity, sizeof *items);
    if (!items)
        return false;
    told->items = items;
    while (behind < told->count && told->items[behind].begin < range->end)
        behind++;
    if (first < behind && told->items[first].begin < range->begin) {
        pieces[piece_count] = told->items[first];
        pieces[piece_count++].end = range->begin;
    }
    pieces[piece_count++] = *range;
    if (first < behind && told->items[behind - 1].end > range->end) {
        pieces[piece_count] = told->items[behind - 1];
        pieces[piece_count++].begin = range->end;
    }
    memmove(&told->items[first + piece_count], &told->items[behind],
            (told->count - behind) * sizeof *told->items);
    memcpy(&told->items[first], pieces, piece_count * sizeof *pieces);
    told->count += first + piece_count - behind;
    return true;
}

bool told_code_gap(const struct told_code *told, uint64_t begin, uint64_t end,
                   struct told_range *gap)
{
    size_t i = first_behind(told, begin);
    for (; i < told->count && told->items[i].begin <= begin; i++)
        begin = told->items[i].end;
    if (begin >= end)
        return false;
    gap->begin = begin;
    gap->end = i < told->count && told->items[i].begin < end ? told->items[i].begin : end;
    return true;
}

static bool is_in_one(const struct vm_blobs *blobs, const struct told_range *range)
{
    const struct vm_blob *blob = vm_blobs_find(blobs, range->begin);
    return blob && blob->end >= range->end;
}

void told_code_drop(struct told_code *told, const struct vm_blobs *now,
                    const struct vm_blobs *before, unsigned walk)
{
    size_t kept = 0;
    for (size_t i = 0; i < told->count; i++)
        if (told->items[i].walk >= walk || is_in_one(now, &told->items[i]) ||
            is_in_one(before, &told->items[i]))
            told->items[kept++] = told->items[i];
    told->count = kept;
}

void told_code_free(struct told_code *told)
{
    free(told->items);
    *told = (struct told_code){0};
}
