/* Of many ranges of addresses, given from the newest to the oldest: which own an address, because
 * no newer one covers it.
 *
 * All bounds are sorted first; between two of them lies a cell, which the first range that covers
 * it owns.  A cell that is owned points behind itself, so that no range looks at it again: the time
 * is that of sorting.
 */
#ifndef JITDUMP_ADDRESS_PAINT_H
#define JITDUMP_ADDRESS_PAINT_H

#include "jitdump/ring/mapped_array.h"

#include <stdint.h>

#define PAINT_NOBODY UINT32_MAX

struct paint_bound {
    uint64_t addr;
    uint32_t range;
    uint32_t is_end;
};

struct paint_cells {
    uint32_t first, end;
};

struct address_paint {
    struct mapped_array bounds, sorted; /* of struct paint_bound */
    struct mapped_array cells;          /* struct paint_cells of each range */
    struct mapped_array owners, next;   /* uint32_t of each cell */
    struct mapped_array digits;         /* uint32_t: how often each occurs */
};

/* Of COUNT ranges, number RANGE is [START, END).  Before the first: room for COUNT.  Returns 0 or
 * -1 without memory. */
int jd_paint_begin(struct address_paint *paint, uint32_t count);
void jd_paint_bounds(struct address_paint *paint, uint32_t range, uint64_t start, uint64_t end);

/* All bounds are known. */
void jd_paint_sort(struct address_paint *paint, uint32_t count);

/* RANGE, older than all that were painted, owns what nobody does.  Returns whether that is
 * anything. */
int jd_paint_range(struct address_paint *paint, uint32_t range);

static inline struct paint_cells jd_paint_cells(const struct address_paint *paint, uint32_t range)
{
    return ((const struct paint_cells *)paint->cells.data)[range];
}

static inline uint32_t jd_paint_owner(const struct address_paint *paint, uint32_t cell)
{
    return ((const uint32_t *)paint->owners.data)[cell];
}

void jd_paint_free(struct address_paint *paint);

#endif
