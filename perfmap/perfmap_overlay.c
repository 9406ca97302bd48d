/* Overlapping lines, resolved in one sweep over the addresses.
 *
 * The lines are sorted by address.  The sweep goes upwards and keeps all lines that it is inside of
 * in a heap with the newest, which owns the address, on top.  Ownership changes only where a line
 * begins or where the newest one ends:
 *
 *     at:      |---------|---------|------------|
 *     heap:    1         2,1       3,2,1        (2 and 1 have ended; they leave when on top)
 *
 * Every step either takes in a line or drops one, and both cost O(log n).
 */
#include "perfmap/perfmap_overlay.h"

#include <errno.h>
#include <stdlib.h>

struct sweep {
    const struct pm_entries *lines; /* by address */
    size_t next;                    /* the first line that the sweep has not reached */
    const struct perfmap_entry **heap;
    size_t heap_count;
    struct pm_entries *entries;
};

bool pm_entries_add(struct pm_entries *entries, const struct perfmap_entry *entry)
{
    if (entries->count == entries->capacity) {
        size_t capacity = entries->capacity ? 2 * entries->capacity : 64;
        struct perfmap_entry *items = reallocarray(entries->items, capacity, sizeof *items);
        if (!items)
            return false;
        entries->items = items;
        entries->capacity = capacity;
    }
    entries->items[entries->count++] = *entry;
    return true;
}

/* ---- The heap ---- */

static void heap_push(struct sweep *sweep, const struct perfmap_entry *line)
{
    size_t i = sweep->heap_count++;
    while (i > 0) {
        size_t above = (i - 1) / 2;
        if (sweep->heap[above]->line > line->line)
            break;
        sweep->heap[i] = sweep->heap[above];
        i = above;
    }
    sweep->heap[i] = line;
}

static void heap_pop(struct sweep *sweep)
{
    const struct perfmap_entry *moved = sweep->heap[--sweep->heap_count];
    size_t i = 0;
    for (;;) {
        size_t below = 2 * i + 1;
        if (below >= sweep->heap_count)
            break;
        if (below + 1 < sweep->heap_count &&
            sweep->heap[below + 1]->line > sweep->heap[below]->line)
            below++;
        if (sweep->heap[below]->line < moved->line)
            break;
        sweep->heap[i] = sweep->heap[below];
        i = below;
    }
    sweep->heap[i] = moved;
}

/* ---- The sweep ---- */

static const struct perfmap_entry *next_line(const struct sweep *sweep)
{
    return sweep->next < sweep->lines->count ? &sweep->lines->items[sweep->next] : NULL;
}

static void drop_ended_lines(struct sweep *sweep, uint64_t at)
{
    while (sweep->heap_count > 0 && pm_entry_last(sweep->heap[0]) < at)
        heap_pop(sweep);
}

static void take_in_lines(struct sweep *sweep, uint64_t at)
{
    const struct perfmap_entry *line;
    while ((line = next_line(sweep)) && line->addr == at) {
        heap_push(sweep, line);
        sweep->next++;
    }
}

/* The last address up to which the newest line is certainly the owner. */
static uint64_t piece_last(const struct sweep *sweep)
{
    uint64_t last = pm_entry_last(sweep->heap[0]);
    const struct perfmap_entry *line = next_line(sweep);
    return line && line->addr <= last ? line->addr - 1 : last;
}

/* Give [AT, LAST] to the newest line, as more of its last piece if it touches that one. */
static bool add_piece(struct sweep *sweep, uint64_t at, uint64_t last)
{
    struct perfmap_entry piece = *sweep->heap[0];
    struct pm_entries *entries = sweep->entries;
    if (entries->count > 0) {
        struct perfmap_entry *previous = &entries->items[entries->count - 1];
        if (previous->line == piece.line && pm_entry_last(previous) + 1 == at) {
            previous->size_bytes += last - at + 1;
            return true;
        }
    }
    piece.addr = at;
    piece.size_bytes = piece.size_bytes ? last - at + 1 : 0;
    return pm_entries_add(entries, &piece);
}

static bool sweep_all(struct sweep *sweep)
{
    uint64_t at = 0;
    for (;;) {
        drop_ended_lines(sweep, at);
        if (sweep->heap_count == 0) {
            if (!next_line(sweep))
                return true;
            at = next_line(sweep)->addr;
        }
        take_in_lines(sweep, at);
        uint64_t last = piece_last(sweep);
        if (!add_piece(sweep, at, last))
            return false;
        if (last == UINT64_MAX)
            return true;
        at = last + 1;
    }
}

static int by_address(const void *left, const void *right)
{
    const struct perfmap_entry *a = left, *b = right;
    return (a->addr > b->addr) - (a->addr < b->addr);
}

/* Most runtimes allocate upwards. */
static bool is_sorted(const struct pm_entries *lines)
{
    for (size_t i = 1; i < lines->count; i++)
        if (lines->items[i].addr < lines->items[i - 1].addr)
            return false;
    return true;
}

int pm_overlay(struct pm_entries *lines, struct pm_entries *entries)
{
    struct sweep sweep = {.lines = lines, .entries = entries};
    if (lines->count == 0)
        return 0;
    if (!is_sorted(lines))
        qsort(lines->items, lines->count, sizeof *lines->items, by_address);
    sweep.heap = reallocarray(NULL, lines->count, sizeof(const struct perfmap_entry *));
    bool done = sweep.heap && sweep_all(&sweep);
    free(sweep.heap);
    return done ? 0 : -ENOMEM;
}
