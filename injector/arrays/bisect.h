/* Binary search.
 *
 * array_bisect(at, count, is_before) finds the first of COUNT indices for which IS_BEFORE is false.
 * IS_BEFORE is an expression in AT, a size_t variable.  AT is set to that index, or to COUNT if
 * IS_BEFORE is true for all.  The items stand in such an order that no item for which it is true
 * follows one for which it is false:
 *
 *     size_t at;
 *     array_bisect(at, count, ranges[at].end <= addr);     the first range that ends after addr
 *     array_bisect(at, count, times[at] <= time_ns);       at - 1: the last one up to time_ns
 *
 * A macro, so that any type, order and indirection is compared in place.
 */
#ifndef PERFJIT_BISECT_H
#define PERFJIT_BISECT_H

#include <stddef.h>

#define array_bisect(at, count, is_before)                                                         \
    do {                                                                                           \
        size_t bisect_first_ = 0, bisect_end_ = (count);                                           \
        while (bisect_first_ < bisect_end_) {                                                      \
            (at) = bisect_first_ + (bisect_end_ - bisect_first_) / 2;                              \
            if (is_before)                                                                         \
                bisect_first_ = (at) + 1;                                                          \
            else                                                                                   \
                bisect_end_ = (at);                                                                \
        }                                                                                          \
        (at) = bisect_first_;                                                                      \
    } while (0)

#endif
