/* See address_paint.h. */
#include "jitdump/ring/address_paint.h"

#include <stdbool.h>
#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

int jd_paint_begin(struct address_paint *paint, uint32_t count)
{
    size_t n = (size_t)count + 1;
    return mapped_array_reserve(&paint->bounds, 2 * n * sizeof(struct paint_bound)) ||
                   mapped_array_reserve(&paint->sorted, 2 * n * sizeof(struct paint_bound)) ||
                   mapped_array_reserve(&paint->cells, n * sizeof(struct paint_cells)) ||
                   mapped_array_reserve(&paint->owners, 2 * n * sizeof(uint32_t)) ||
                   mapped_array_reserve(&paint->next, 2 * n * sizeof(uint32_t)) ||
                   mapped_array_reserve(&paint->digits, DIGITS * sizeof(uint32_t))
               ? -1
               : 0;
}

void jd_paint_bounds(struct address_paint *paint, uint32_t range, uint64_t start, uint64_t end)
{
    struct paint_bound *bounds = (struct paint_bound *)paint->bounds.data + 2 * (size_t)range;
    bounds[0] = (struct paint_bound){start, range, false};
    bounds[1] = (struct paint_bound){end > start ? end : start, range, true};
}

/* ---- Sorting ---- */

/* The bits in which the addresses differ.  Code lies in a few regions, so many bits are equal. */
static uint64_t varying_bits(const struct paint_bound *bounds, size_t count)
{
    uint64_t varying = 0;
    for (size_t i = 1; i < count; i++)
        varying |= bounds[i].addr ^ bounds[0].addr;
    return varying;
}

static void sort_by_digit(const struct paint_bound *from, struct paint_bound *to, size_t count,
                          unsigned shift, uint32_t *places)
{
    memset(places, 0, DIGITS * sizeof *places);
    for (size_t i = 0; i < count; i++)
        places[(from[i].addr >> shift) % DIGITS]++;
    for (uint32_t digit = 0, place = 0; digit < DIGITS; digit++) {
        uint32_t next = place + places[digit];
        places[digit] = place;
        place = next;
    }
    for (size_t i = 0; i < count; i++)
        to[places[(from[i].addr >> shift) % DIGITS]++] = from[i];
}

/* By address, digit by digit, from the least. */
static void sort_bounds(struct address_paint *paint, size_t count)
{
    uint64_t varying = varying_bits(paint->bounds.data, count);
    for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
        if ((varying >> shift) % DIGITS == 0)
            continue;
        sort_by_digit(paint->bounds.data, paint->sorted.data, count, shift, paint->digits.data);
        struct mapped_array sorted = paint->sorted;
        paint->sorted = paint->bounds;
        paint->bounds = sorted;
    }
}

void jd_paint_sort(struct address_paint *paint, uint32_t count)
{
    size_t bound_count = 2 * (size_t)count;
    sort_bounds(paint, bound_count);
    const struct paint_bound *bounds = paint->bounds.data;
    struct paint_cells *cells = paint->cells.data;
    uint32_t *owners = paint->owners.data, *next = paint->next.data, cell = 0;
    for (size_t i = 0; i < bound_count; i++) {
        cell += i > 0 && bounds[i].addr != bounds[i - 1].addr;
        if (bounds[i].is_end)
            cells[bounds[i].range].end = cell;
        else
            cells[bounds[i].range].first = cell;
    }
    for (uint32_t i = 0; bound_count && i <= cell; i++) {
        owners[i] = PAINT_NOBODY;
        next[i] = i;
    }
}

/* ---- Painting ---- */

/* The first cell from CELL on without an owner.  The last cell never has one, since it is behind
 * all ranges. */
static uint32_t unowned_from(uint32_t *next, uint32_t cell)
{
    while (next[cell] != cell) {
        next[cell] = next[next[cell]];
        cell = next[cell];
    }
    return cell;
}

int jd_paint_range(struct address_paint *paint, uint32_t range)
{
    uint32_t *owners = paint->owners.data, *next = paint->next.data;
    const struct paint_cells cells = jd_paint_cells(paint, range);
    int any = false;
    for (uint32_t cell = unowned_from(next, cells.first); cell < cells.end;
         cell = unowned_from(next, cell)) {
        owners[cell] = range;
        next[cell] = cell + 1;
        any = true;
    }
    return any;
}

void jd_paint_free(struct address_paint *paint)
{
    mapped_array_free(&paint->bounds);
    mapped_array_free(&paint->sorted);
    mapped_array_free(&paint->cells);
    mapped_array_free(&paint->owners);
    mapped_array_free(&paint->next);
    mapped_array_free(&paint->digits);
}
