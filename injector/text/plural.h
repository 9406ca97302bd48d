/* The ending of a noun behind a number. */
#ifndef PERFJIT_PLURAL_H
#define PERFJIT_PLURAL_H

#include <stdint.h>

/* "s", but "" behind 1. */
static inline const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

#endif
