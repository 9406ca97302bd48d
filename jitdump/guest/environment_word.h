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

static inline bool environment_knows(const char *word, size_t length)
{
    static const char *const known[] = {"attach", "check", "dump", "gdb", "map", "unmapped"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (length == strlen(known[i]) && memcmp(word, known[i], length) == 0)
            return true;
    return length == 0 || strncmp(word, "ring=", strlen("ring=")) == 0;
}

/* The first word that none of the libraries knows: it is misspelt, or a later version's.  Sets
 * *LENGTH.  Returns NULL if there is none; in the path of the command, which scripts keep in a
 * variable of that name, there are no words. */
static inline const char *environment_unknown(size_t *length)
{
    const char *at = secure_getenv("PERFJIT");
    if (at && strchr(at, '/'))
        return NULL;
    while (at) {
        *length = strcspn(at, ",");
        if (!environment_knows(at, *length))
            return at;
        at = at[*length] ? at + *length + 1 : NULL;
    }
    return NULL;
}

#endif
