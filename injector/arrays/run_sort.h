/* Sorting of ascending runs by the 64-bit number that each item begins with.
 *
 * A recording consists of such runs: one for each per-CPU buffer that perf emptied. Adjacent runs
 * are merged until one is left; the sort is stable. ITEM_BYTES should be a compile-time constant.
 */
#ifndef PERFJIT_RUN_SORT_H
#define PERFJIT_RUN_SORT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t run_sort_key(const unsigned char *item)
{
    uint64_t key;
    memcpy(&key, item, sizeof key);
    return key;
}

/* The end of the run that begins at ITEM; END is the end of all items. */
static inline const unsigned char *run_sort_end(const unsigned char *item, const unsigned char *end,
                                                size_t item_bytes)
{
    for (item += item_bytes; item < end; item += item_bytes)
        if (run_sort_key(item) < run_sort_key(item - item_bytes))
            break;
    return item < end ? item : end;
}

/* The items from LEFT to RIGHT and those from RIGHT to END, as one run, to TO. */
static inline void run_sort_merge(unsigned char *to, const unsigned char *left,
                                  const unsigned char *right, const unsigned char *end,
                                  size_t item_bytes)
{
    const unsigned char *left_end = right;
    for (; left < left_end && right < end; to += item_bytes) {
        const unsigned char **next = run_sort_key(right) < run_sort_key(left) ? &right : &left;
        memcpy(to, *next, item_bytes);
        *next += item_bytes;
    }
    memcpy(to, left, (size_t)(left_end - left));
    memcpy(to + (left_end - left), right, (size_t)(end - right));
}

/* Sort the COUNT ITEMS, with ROOM for as many. */
static inline void run_sort(void *items, void *room, size_t count, size_t item_bytes)
{
    unsigned char *from = items, *to = room, *merged;
    size_t bytes = count * item_bytes;
    while (count && run_sort_end(from, from + bytes, item_bytes) < from + bytes) {
        const unsigned char *end = from + bytes, *right, *next;
        for (const unsigned char *left = from; left < end; left = next) {
            right = run_sort_end(left, end, item_bytes);
            next = right < end ? run_sort_end(right, end, item_bytes) : end;
            run_sort_merge(to + (left - from), left, right, next, item_bytes);
        }
        merged = to;
        to = from;
        from = merged;
    }
    if (from != items)
        memcpy(items, from, bytes);
}

#endif
