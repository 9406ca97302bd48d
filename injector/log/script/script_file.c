/* See script_file.h. */
#include "injector/log/script/script_file.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/files/regular_file.h"
#include "injector/log/script/file_url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SCRIPT_BYTES_MOST = 256 << 20,
    FIRST_OF_TWO = 0x10000, /* the first character of two units */
};

bool script_file_path(const char *name, size_t bytes, const char *root, char path[PATH_MAX])
{
    const int front = snprintf(path, PATH_MAX, "%s", root ? root : "");
    if (!bytes || front < 0 || (size_t)front + bytes >= PATH_MAX || memchr(name, '\0', bytes))
        return false;
    char *inner = path + front;
    size_t filled = file_url_path(inner, name, bytes);
    if (!filled && *name == '/') {
        memcpy(inner, name, bytes);
        filled = bytes;
    }
    inner[filled] = '\0';
    return filled;
}

char *script_text_read(const char *path, size_t *bytes)
{
    return regular_file_bytes(path, SCRIPT_BYTES_MOST, bytes);
}

/* Behind the byte order mark. */
static const unsigned char *behind_mark(const char *text, size_t bytes)
{
    const bool has_mark = bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0;
    return (const unsigned char *)text + (has_mark ? 3 : 0);
}

/* The character at *AT; a byte that is no UTF-8 is one of its own, as in V8's replacement. */
static uint32_t take_character(const unsigned char **at, const unsigned char *end)
{
    const unsigned char first = *(*at)++;
    const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
    uint32_t code = more == 3 ? first & 7 : more == 2 ? first & 15 : more == 1 ? first & 31 : first;
    for (int i = 0; i < more; i++) {
        if (*at == end || (**at & 0xc0) != 0x80)
            return 0xfffd;
        code = code << 6 | (*(*at)++ & 63u);
    }
    return first >= 0x80 && !more ? 0xfffd : code;
}

/* The characters of one byte each at AT, up to the first that has more, or some characters before
 * it: nearly all scripts are ASCII, and have megabytes. */
static const unsigned char *take_ascii(struct script_file *file, const unsigned char *at,
                                       const unsigned char *end)
{
    uint16_t *to = file->units + file->count;
    unsigned char bytes[8]; /* a copy, which TO can't change */
    uint64_t eight;
    for (; (size_t)(end - at) >= sizeof eight; at += sizeof eight, to += sizeof eight) {
        memcpy(bytes, at, sizeof bytes);
        memcpy(&eight, at, sizeof eight);
        if (eight & UINT64_C(0x8080808080808080))
            break;
        for (size_t i = 0; i < sizeof eight; i++)
            to[i] = bytes[i];
    }
    file->count = (size_t)(to - file->units);
    return at;
}

/* No text has more units than bytes. */
static int find_units(struct script_file *file, const char *text, size_t bytes)
{
    const unsigned char *at = behind_mark(text, bytes), *end = (const unsigned char *)text + bytes;
    file->units = malloc((bytes + 1) * sizeof *file->units);
    if (!file->units)
        return -1;
    while ((at = take_ascii(file, at, end)) < end) {
        uint32_t code = take_character(&at, end);
        if (code >= FIRST_OF_TWO) {
            file->units[file->count++] = (uint16_t)(0xd800 + ((code - FIRST_OF_TWO) >> 10));
            code = 0xdc00 + (code & 0x3ff);
        }
        file->units[file->count++] = (uint16_t)code;
    }
    return 0;
}

/* Whether the BYTES bytes at AT, at most eight, are ASCII, and none is \r. */
static bool are_plain(const unsigned char *at, size_t bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
    uint64_t eight = 0;
    if (bytes == sizeof eight)
        memcpy(&eight, at, sizeof eight);
    for (size_t i = 0; bytes < sizeof eight && i < bytes; i++)
        eight = eight << 8 | at[i];
    const uint64_t returns = eight ^ '\r' * ones; /* zero bytes */
    return !((eight | ((returns - ones) & ~returns)) & high);
}

static int add_line(struct script_lines *lines, size_t start)
{
    if (array_reserve(lines->starts, lines->count, lines->capacity))
        return -1;
    lines->starts[lines->count++] = (uint32_t)start;
    return 0;
}

/* Take what stands before \n or END, at STOP: nearly all of it is ASCII. *UNIT goes with it. */
static int take_line(struct script_lines *lines, const unsigned char *at, const unsigned char *stop,
                     size_t *unit)
{
    enum { AT_ONCE = 8 };
    while (at < stop) {
        const size_t bytes = stop - at < AT_ONCE ? (size_t)(stop - at) : AT_ONCE;
        if (are_plain(at, bytes)) {
            at += bytes;
            *unit += bytes;
            continue;
        }
        const uint32_t code = take_character(&at, stop);
        *unit += code >= FIRST_OF_TWO ? 2 : 1;
        if ((code == 0x2028 || code == 0x2029 || (code == '\r' && at < stop)) &&
            add_line(lines, *unit))
            return -1;
    }
    return 0;
}

/* A \r in front of \n ends no line, but one at the end of all does. */
int script_lines_take(struct script_lines *lines, const char *text, size_t bytes)
{
    const unsigned char *at = behind_mark(text, bytes), *end = (const unsigned char *)text + bytes;
    const unsigned char *stop;
    size_t unit = 0;
    *lines = (struct script_lines){0};
    if (add_line(lines, 0))
        return -1;
    for (; (stop = memchr(at, '\n', (size_t)(end - at))); at = stop + 1)
        if (take_line(lines, at, stop, &unit) || add_line(lines, ++unit))
            return -1;
    const bool has_return = at < end && end[-1] == '\r';
    return take_line(lines, at, end, &unit) || (has_return && add_line(lines, unit)) ? -1 : 0;
}

uint32_t script_lines_at(const struct script_lines *lines, size_t at)
{
    size_t behind;
    array_bisect(behind, lines->count, lines->starts[behind] <= at);
    return (uint32_t)(behind - 1);
}

void script_lines_free(struct script_lines *lines)
{
    free(lines->starts);
    *lines = (struct script_lines){0};
}

bool script_unit_is_of_identifier(unsigned unit)
{
    return unit >= 0x80 || unit == '_' || unit == '$' || unit == '#' ||
           (unit >= '0' && unit <= '9') || (unit >= 'a' && unit <= 'z') ||
           (unit >= 'A' && unit <= 'Z');
}

int script_file_take(struct script_file *file, const char *text, size_t bytes)
{
    *file = (struct script_file){0};
    return find_units(file, text, bytes) || script_lines_take(&file->lines, text, bytes) ? -1 : 0;
}

int script_file_read(struct script_file *file, const char *path)
{
    size_t bytes;
    *file = (struct script_file){0};
    char *text = script_text_read(path, &bytes);
    const int result = text ? script_file_take(file, text, bytes) : -1;
    free(text);
    return result;
}

void script_file_free(struct script_file *file)
{
    free(file->units);
    script_lines_free(&file->lines);
    *file = (struct script_file){0};
}
