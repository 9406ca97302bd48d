/* Nouns and verbs behind a number. */
#ifndef PERFJIT_PLURAL_H
#define PERFJIT_PLURAL_H

#include <stdint.h>

/* "s", but "" behind 1. */
static inline const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* The ending of a verb: "1 sample stays", "2 samples stay". */
static inline const char *verb_ending(uint64_t count)
{
    return count == 1 ? "s" : "";
}

static inline const char *is_or_are(uint64_t count)
{
    return count == 1 ? "is" : "are";
}

#endif
