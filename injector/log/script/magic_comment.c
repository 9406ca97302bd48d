/* See magic_comment.h. */
#include "injector/log/script/magic_comment.h"

#include <stdbool.h>
#include <string.h>

/* Whether nothing but comments of a line each is in TEXT, and the end of what a loader wrapped the
 * script into: "}}" of vitest's. */
static bool are_comments(const char *text)
{
    while (*text) {
        const size_t bytes = strcspn(text, "\r\n");
        const size_t skipped = strspn(text, " \t(){}];");
        const char *at = text + (skipped < bytes ? skipped : bytes);
        const size_t left = bytes - (size_t)(at - text);
        if (left && strncmp(at, "//", 2) &&
            (strncmp(at, "/*", 2) || memmem(at, left, "*/", 2) != at + left - 2))
            return false;
        text += bytes + (text[bytes] != '\0');
    }
    return true;
}

/* How long the URL at TEXT is.  encodeURIComponent leaves ' and * as they are. */
static size_t url_bytes(const char *text)
{
    const char *ends = strncmp(text, "data:", 5) ? " \t\r\n*'\"" : " \t\r\n*\"";
    size_t bytes = strcspn(text, ends);
    while (text[bytes] == '*' && text[bytes + 1] != '/')
        bytes += 1 + strcspn(text + bytes + 1, ends);
    return bytes;
}

char *magic_comment(char *text, size_t bytes, const char *key)
{
    char *found = NULL, *at = text;
    text[bytes] = '\0';
    while ((at = memmem(at, bytes - (size_t)(at - text), key, strlen(key)))) {
        const char *sign = at;
        while (sign > text && (sign[-1] == ' ' || sign[-1] == '\t'))
            sign--;
        at += strlen(key);
        if (sign - text >= 3 && (sign[-1] == '#' || sign[-1] == '@') && sign[-3] == '/' &&
            (sign[-2] == '/' || sign[-2] == '*'))
            found = at;
    }
    char *end = found ? found + url_bytes(found) : NULL;
    const char *rest = end ? end + strspn(end, " \t") : NULL;
    if (!end || end == found)
        return NULL;
    rest += strncmp(rest, "*/", 2) ? 0 : 2;
    if (!are_comments(rest))
        return NULL;
    *end = '\0';
    return found;
}
