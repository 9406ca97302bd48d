/* See file_url.h. */
#include "injector/log/script/file_url.h"

#include <string.h>

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 'a' ^ 'A';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that the three characters at TEXT, of which LEFT are there, encode; -1 if they encode
 * none.  No path has a NUL. */
static int encoded_byte(const char *text, size_t left)
{
    if (left < 3 || text[0] != '%' || hex_digit(text[1]) < 0 || hex_digit(text[2]) < 0)
        return -1;
    int byte = hex_digit(text[1]) * 16 + hex_digit(text[2]);
    return byte ? byte : -1;
}

size_t percent_decode(char *to, const char *text, size_t bytes)
{
    size_t filled = 0;
    for (size_t at = 0; at < bytes; at++) {
        int byte = encoded_byte(text + at, bytes - at);
        to[filled++] = byte < 0 ? text[at] : (char)byte;
        at += byte < 0 ? 0 : 2;
    }
    return filled;
}

size_t file_url_path(char *to, const char *url, size_t bytes)
{
    static const char *const origins[] = {"file:///", "file://localhost/"};
    for (size_t i = 0; i < sizeof origins / sizeof origins[0]; i++) {
        const size_t origin = strlen(origins[i]) - 1; /* the path begins with the slash */
        if (bytes <= origin || memcmp(url, origins[i], origin + 1) != 0)
            continue;
        size_t end = origin;
        while (end < bytes && url[end] != '?' && url[end] != '#')
            end++;
        return percent_decode(to, url + origin, end - origin);
    }
    return 0;
}
