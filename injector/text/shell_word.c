/* See shell_word.h. */
#include "injector/text/shell_word.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Letters of other alphabets stand above ASCII. */
static bool is_plain(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (unsigned char)c >= 0x80 || (c && strchr("/._-+,:@%=", c));
}

/* No shell reads anything in '...', and none can have a ' there: it stands outside, as \'. */
static const char *quote(char text[SHELL_WORD_BYTES], const char *before, const char *path)
{
    size_t bytes = (size_t)snprintf(text, SHELL_WORD_BYTES, "'%s", before);
    for (; *path; path++) {
        if (bytes + sizeof "'\\'''" > SHELL_WORD_BYTES)
            return NULL;
        bytes += (size_t)snprintf(text + bytes, SHELL_WORD_BYTES - bytes,
                                  *path == '\'' ? "'\\''" : "%c", *path);
    }
    snprintf(text + bytes, SHELL_WORD_BYTES - bytes, "'");
    return text;
}

const char *shell_word(char text[SHELL_WORD_BYTES], const char *path)
{
    const char *before = path[0] == '-' && path[1] ? "./" : "", *at = path;
    while (is_plain(*at))
        at++;
    if (*at || !*path) {
        const char *quoted = quote(text, before, path);
        return quoted ? quoted : path;
    }
    if (!*before || strlen(path) + sizeof "./" > SHELL_WORD_BYTES)
        return path;
    snprintf(text, SHELL_WORD_BYTES, "%s%s", before, path);
    return text;
}
