/* What a text begins or ends with. */
#ifndef PERFJIT_AFFIX_H
#define PERFJIT_AFFIX_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Whether the BYTES at TEXT begin with PREFIX. */
static inline bool text_begins(const char *text, size_t bytes, const char *prefix)
{
    size_t length = strlen(prefix);
    return bytes >= length && memcmp(text, prefix, length) == 0;
}

/* Whether the BYTES at TEXT end with SUFFIX. */
static inline bool text_ends(const char *text, size_t bytes, const char *suffix)
{
    size_t length = strlen(suffix);
    return bytes >= length && memcmp(text + bytes - length, suffix, length) == 0;
}

#endif
