/* See script_file.h. */
#include "injector/log/script/script_file.h"

#include "injector/arrays/array.h"
#include "injector/files/regular_file.h"
#include "injector/log/script/file_url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCRIPT_BYTES_MOST = 256 << 20 };

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
    const unsigned char *at = (const unsigned char *)text, *end = at + bytes;
    file->units = malloc((bytes + 1) * sizeof *file->units);
    if (!file->units)
        return -1;
    if (bytes >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
        at += 3;
    while ((at = take_ascii(file, at, end)) < end) {
        uint32_t code = take_character(&at, end);
        if (code >= 0x10000) {
            file->units[file->count++] = (uint16_t)(0xd800 + ((code - 0x10000) >> 10));
            code = 0xdc00 + (code & 0x3ff);
        }
        file->units[file->count++] = (uint16_t)code;
    }
    return 0;
}

/* Whether the next four units are ASCII and behind all characters that end a line. */
static bool are_plain(const uint16_t *units)
{
    uint64_t four;
    memcpy(&four, units, sizeof four);
    return !(four & UINT64_C(0xff80ff80ff80ff80)) &&
           ((four + UINT64_C(0x7ff27ff27ff27ff2)) & UINT64_C(0x8000800080008000)) ==
               UINT64_C(0x8000800080008000);
}

static int add_line(struct script_file *file, size_t start)
{
    if (array_reserve(file->starts, file->line_count, file->line_capacity))
        return -1;
    file->starts[file->line_count++] = (uint32_t)start;
    return 0;
}

static int find_lines(struct script_file *file)
{
    if (add_line(file, 0))
        return -1;
    for (size_t i = 0; i < file->count; i++) {
        while (i + 4 < file->count && are_plain(file->units + i))
            i += 4;
        const uint16_t unit = file->units[i];
        const bool ends = unit == '\n' || unit == 0x2028 || unit == 0x2029 ||
                          (unit == '\r' && (i + 1 == file->count || file->units[i + 1] != '\n'));
        if (ends && add_line(file, i + 1))
            return -1;
    }
    return 0;
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
    return find_units(file, text, bytes) || find_lines(file) ? -1 : 0;
}

int script_file_read(struct script_file *file, const char *path)
{
    size_t bytes;
    *file = (struct script_file){0};
    char *text = regular_file_bytes(path, SCRIPT_BYTES_MOST, &bytes);
    const int result = text ? script_file_take(file, text, bytes) : -1;
    free(text);
    return result;
}

void script_file_free(struct script_file *file)
{
    free(file->units);
    free(file->starts);
    *file = (struct script_file){0};
}
