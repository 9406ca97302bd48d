/* A point in a recording. */
#ifndef PERFJIT_LIFE_MOMENT_H
#define PERFJIT_LIFE_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

struct life_moment {
    uint64_t time_ns;
    uint64_t number; /* of the record: orders equal times */
};

static inline bool life_moment_before(struct life_moment a, struct life_moment b)
{
    return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.number < b.number;
}

/* As strcmp. */
static inline int life_moment_compare(struct life_moment a, struct life_moment b)
{
    return life_moment_before(a, b) ? -1 : life_moment_before(b, a);
}

#endif
