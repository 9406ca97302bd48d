/* Sorting by the 64-bit number that each item begins with: an address, an offset, a time, an id.
 *
 * Items from runtimes mostly are in order already, and checking costs little.  Items with equal
 * numbers may change places.  run_sort keeps them in order, and is faster for a few runs.
 */
#ifndef PERFJIT_NUMBER_SORT_H
#define PERFJIT_NUMBER_SORT_H

#include "injector/arrays/array.h"

static inline int number_sort_compare(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

static inline void number_sort(void *items, size_t count, size_t item_bytes)
{
    if (!array_in_order(items, count, item_bytes, number_sort_compare))
        qsort(items, count, item_bytes, number_sort_compare);
}

#endif
