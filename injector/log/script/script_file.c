/* See script_file.h. */
#include "injector/log/script/script_file.h"

#include "injector/arrays/array.h"
#include "injector/files/regular_file.h"
#include "injector/log/script/file_url.h"

#include <stdio.h>
#include <string.h>

enum { SCRIPT_BYTES_MOST = 256 << 20 };

bool script_file_path(const char *name, size_t bytes, const char *root, char path[PATH_MAX])
{
    const int front = snprintf(path, PATH_MAX, "%s", root ? root : "");
    if (front < 0 || (size_t)front + bytes >= PATH_MAX || memchr(name, '\0', bytes))
        return false;
    char *inner = path + front;
    size_t filled = file_url_path(inner, name, bytes);
    if (!filled && bytes && *name == '/') {
        memcpy(inner, name, bytes);
        filled = bytes;
    }
    inner[filled] = '\0';
    return filled;
}

static int add_unit(struct script_file *file, uint32_t unit)
{
    if (array_reserve(file->units, file->count, file->capacity))
        return -1;
    file->units[file->count++] = (uint16_t)unit;
    return 0;
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

static int find_units(struct script_file *file, const char *text, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + bytes;
    file->units = array_expect(file->units, bytes + 1, &file->capacity, sizeof *file->units);
    if (bytes >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
        at += 3;
    while (at < end) {
        const uint32_t code = take_character(&at, end);
        if (code >= 0x10000 && add_unit(file, 0xd800 + ((code - 0x10000) >> 10)))
            return -1;
        if (add_unit(file, code >= 0x10000 ? 0xdc00 + (code & 0x3ff) : code))
            return -1;
    }
    return 0;
}

static int find_lines(struct script_file *file)
{
    for (size_t i = 0; i <= file->count; i++) {
        const uint16_t before = i ? file->units[i - 1] : '\n';
        const bool ends = before == '\n' || before == 0x2028 || before == 0x2029 ||
                          (before == '\r' && (i == file->count || file->units[i] != '\n'));
        if (!ends)
            continue;
        if (array_reserve(file->starts, file->line_count, file->line_capacity))
            return -1;
        file->starts[file->line_count++] = (uint32_t)i;
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
