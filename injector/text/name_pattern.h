/* Names as a user writes them for options: of threads, processes and spans. */
#ifndef PERFJIT_NAME_PATTERN_H
#define PERFJIT_NAME_PATTERN_H

#include <fnmatch.h>
#include <stdbool.h>
#include <string.h>

/* Whether NAME is WORD, or as the pattern WORD says (V8*). */
static inline bool name_is_as(const char *name, const char *word)
{
    return strcmp(word, name) == 0 || fnmatch(word, name, 0) == 0;
}

#endif
