/* The stamps of a dump's records with code: loads, moves, unloads. */
#ifndef PERFJIT_STAMP_RANGE_H
#define PERFJIT_STAMP_RANGE_H

#include <stddef.h>
#include <stdint.h>

struct stamp_range {
    uint64_t first, last; /* the least and the greatest */
    size_t count;
};

static inline void stamp_range_add(struct stamp_range *stamps, uint64_t stamp)
{
    if (stamps->count++ == 0)
        stamps->first = stamps->last = stamp;
    if (stamp < stamps->first)
        stamps->first = stamp;
    if (stamp > stamps->last)
        stamps->last = stamp;
}

#endif
