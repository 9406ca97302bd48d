/* See source_path.h. */
#include "injector/inject/dwarf/source_path.h"

#include <stdlib.h>

/* The part of FILE that is the path of a file:// URL of this host, still encoded; none if it is no
 * such URL. */
static struct line_text url_path_of(struct line_text file)
{
    static const char *const origins[] = {"file:///", "file://localhost/"};
    for (size_t i = 0; i < sizeof origins / sizeof origins[0]; i++) {
        size_t bytes = strlen(origins[i]) - 1; /* the path begins with the slash */
        if (file.bytes <= bytes || memcmp(file.text, origins[i], bytes + 1) != 0)
            continue;
        struct line_text path = {file.text + bytes, file.bytes - (uint32_t)bytes};
        for (uint32_t at = 0; at < path.bytes; at++)
            if (path.text[at] == '?' || path.text[at] == '#')
                path.bytes = at;
        return path;
    }
    return (struct line_text){NULL, 0};
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 'a' ^ 'A';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that the three characters at TEXT, of which LEFT are there, encode; -1 if they encode
 * none.  No path has a NUL. */
static int encoded_byte(const char *text, uint32_t left)
{
    if (left < 3 || text[0] != '%' || hex_digit(text[1]) < 0 || hex_digit(text[2]) < 0)
        return -1;
    int byte = hex_digit(text[1]) * 16 + hex_digit(text[2]);
    return byte ? byte : -1;
}

static uint32_t decode(char *to, struct line_text path)
{
    uint32_t bytes = 0;
    for (uint32_t at = 0; at < path.bytes; at++) {
        int byte = encoded_byte(path.text + at, path.bytes - at);
        to[bytes++] = byte < 0 ? path.text[at] : (char)byte;
        at += byte < 0 ? 0 : 2;
    }
    return bytes;
}

static uint32_t replace_colons(char *to, struct line_text file)
{
    for (uint32_t at = 0; at < file.bytes; at++)
        to[at] = file.text[at] == ':' ? '_' : file.text[at];
    return file.bytes;
}

static bool has_room(struct source_path *path, size_t bytes)
{
    if (bytes <= path->capacity)
        return true;
    char *text = realloc(path->text, bytes);
    if (!text)
        return false;
    path->text = text;
    path->capacity = bytes;
    return true;
}

struct line_text source_path_of(struct source_path *path, struct line_text file)
{
    if (file.bytes == 0 || file.text[0] == '/' || !memchr(file.text, ':', file.bytes) ||
        !has_room(path, file.bytes))
        return file;
    struct line_text url_path = url_path_of(file);
    uint32_t bytes =
        url_path.text ? decode(path->text, url_path) : replace_colons(path->text, file);
    return (struct line_text){path->text, bytes};
}

void source_path_free(struct source_path *path)
{
    free(path->text);
    *path = (struct source_path){0};
}
