/* Which of many ranges of addresses own an address.  Ranges are given from the newest to the
 * oldest.  A range owns the addresses that no newer range covers.
 *
 * All bounds are sorted first.  A cell lies between two neighbouring bounds, and the first range
 * that covers a cell owns it.  An owned cell points behind itself, so no range visits it again:
 * sorting takes most of the time.
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

/* jd_paint_begin makes room for COUNT ranges.  Then each RANGE, a number, is given as [START, END).
 * Returns 0 or -1 without memory. */
int jd_paint_begin(struct address_paint *paint, uint32_t count);
void jd_paint_bounds(struct address_paint *paint, uint32_t range, uint64_t start, uint64_t end);

/* All bounds are known. */
void jd_paint_sort(struct address_paint *paint, uint32_t count);

/* RANGE is older than all ranges before.  It owns all its cells that have no owner yet.  Returns
 * whether there are any. */
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
