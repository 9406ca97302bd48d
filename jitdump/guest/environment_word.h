/* The words in PERFJIT, by which a user switches things on: PERFJIT=dump,map,ring=64M. */
#ifndef JITDUMP_ENVIRONMENT_WORD_H
#define JITDUMP_ENVIRONMENT_WORD_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Whether PERFJIT has WORD.  A set-user-ID program ignores PERFJIT. */
static inline bool environment_has(const char *word)
{
    const char *at = secure_getenv("PERFJIT");
    while (at) {
        size_t length = strcspn(at, ",");
        if (length == strlen(word) && memcmp(at, word, length) == 0)
            return true;
        at = at[length] ? at + length + 1 : NULL;
    }
    return false;
}

#endif
