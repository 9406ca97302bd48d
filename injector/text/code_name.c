/* See code_name.h. */
#include "injector/text/code_name.h"

#include "injector/text/character.h"

#include <stdlib.h>
#include <string.h>

/* Hidden characters stay in names: outputs escape them, each in its own way. */
static bool is_kept(enum character character)
{
    return character == CHARACTER_PLAIN || character == CHARACTER_HIDDEN;
}

/* Nearly all names are clean, and every name is checked. */
bool code_name_is_printable(const char *name, size_t bytes)
{
    if (characters_are_plain_ascii(name, bytes))
        return true;
    for (size_t at = 0, count; at < bytes; at += count)
        if (!is_kept(character_at(name + at, bytes - at, &count)))
            return false;
    return true;
}

char *code_name_printable(const char *name, size_t bytes)
{
    char *cleaned = malloc(bytes + 1);
    if (!cleaned)
        return NULL;
    memcpy(cleaned, name, bytes);
    cleaned[bytes] = '\0';
    if (characters_are_plain_ascii(name, bytes))
        return cleaned;
    for (size_t at = 0, count; at < bytes; at += count) {
        if (is_kept(character_at(name + at, bytes - at, &count)))
            continue;
        memset(cleaned + at, name[at] >= '\t' && name[at] <= '\r' ? ' ' : '?', count);
    }
    return cleaned;
}
