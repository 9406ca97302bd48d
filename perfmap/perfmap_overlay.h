/* Overlapping lines, resolved in the order in which they were written.
 *
 *     line 1   |-------- outer --------|
 *     line 2             |-- inner --|
 *     line 3                       |--- next ---|
 *
 *     becomes  |- outer -|- inner -|--- next ---|
 */
#ifndef PERFMAP_OVERLAY_H
#define PERFMAP_OVERLAY_H

#include "perfmap/perfmap.h"

#include <stdbool.h>

/* A growing list of entries.  All zero is empty; freed with free(items). */
struct pm_entries {
    struct perfmap_entry *items;
    size_t count;
    size_t capacity;
};

/* Returns false if there is no memory. */
bool pm_entries_add(struct pm_entries *entries, const struct perfmap_entry *entry);

/* The last address that ENTRY contains.  Kept instead of the end, which may be 2^64. */
static inline uint64_t pm_entry_last(const struct perfmap_entry *entry)
{
    return entry->size_bytes ? entry->addr + entry->size_bytes - 1 : entry->addr;
}

/* Put the remaining parts of LINES into ENTRIES, by address.  The `line` members must differ.
 * Sorts LINES.  Takes O(n log n) time, and at most twice as many entries as there are lines.
 *
 * Returns 0, or -ENOMEM with ENTRIES partly filled. */
int pm_overlay(struct pm_entries *lines, struct pm_entries *entries);

#endif
