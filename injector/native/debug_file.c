/* See debug_file.h.  Source: GDB manual, "Debugging Information in Separate Files". */
#include "injector/native/debug_file.h"

#include "jitdump/format/byte_cursor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char debug_dir[] = "/usr/lib/debug";

/* ---- By build-id ---- */

static bool open_by_id_below(struct elf_view *debug, const struct build_id *id, const char *prefix)
{
    char hex[BUILD_ID_HEX_BYTES], *path;
    build_id_hex(hex, id);
    if (asprintf(&path, "%s%s/.build-id/%.2s/%s.debug", prefix, debug_dir, hex, hex + 2) < 0)
        return false;
    int result = elf_view_open(debug, path);
    free(path);
    if (!result && build_id_is(&debug->build_id, id))
        return true;
    elf_view_close(debug);
    return false;
}

/* ---- By name ---- */

/* The CRC-32 that is in .gnu_debuglink, of the whole file. */
static uint32_t crc_of(const uint8_t *bytes, size_t size)
{
    uint32_t table[256], crc = UINT32_MAX;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? UINT32_C(0xedb88320) : 0);
    }
    for (size_t i = 0; i < size; i++)
        crc = crc >> 8 ^ table[(crc ^ bytes[i]) & 0xff];
    return ~crc;
}

/* Whether SECTION of VIEW begins with the NAME of another file; BEHIND is what follows. */
static bool read_name(struct elf_view *view, const char *section, const char **name,
                      struct byte_cursor *behind)
{
    size_t size = 0;
    uint64_t addr;
    const uint8_t *bytes = elf_view_section(view, section, &size, &addr);
    if (!bytes)
        return false;
    *behind = byte_cursor_over(bytes, size, view->big_endian);
    *name = cursor_cstr(behind);
    return *name && **name;
}

/* A file's .gnu_debuglink: a name, padded to 4, and the CRC. */
struct debug_link {
    const char *name;
    uint32_t crc;
};

static bool read_link(struct elf_view *view, struct debug_link *link)
{
    struct byte_cursor cursor;
    if (!read_name(view, ".gnu_debuglink", &link->name, &cursor))
        return false;
    cursor_skip(&cursor, (4 - cursor.offset % 4) % 4);
    link->crc = cursor_u32(&cursor);
    return !cursor.failed && !strchr(link->name, '/');
}

/* Open the file at PATH, if that leads to one below DIRECTORY.  Both are released. */
static bool open_in(struct elf_view *debug, char *directory, char *path)
{
    char *real = path ? realpath(path, NULL) : NULL;
    char *above = directory ? realpath(directory, NULL) : NULL;
    size_t length = above ? strlen(above) : 0;
    bool is_below = real && above && strncmp(real, above, length) == 0 &&
                    (real[length] == '/' || above[length - 1] == '/');
    int result = is_below ? elf_view_open(debug, real) : -1;
    free(above);
    free(real);
    free(directory);
    free(path);
    return result == 0;
}

static char *text_of(const char *a, const char *b, const char *c)
{
    char *text;
    return asprintf(&text, "%s%s%s", a, b, c) < 0 ? NULL : text;
}

/* Look for LINK in DIRECTORY; both that and WITHIN are released. */
static bool open_link_in(struct elf_view *debug, const struct debug_link *link, char *directory,
                         char *within)
{
    bool opened = open_in(debug, within, directory ? text_of(directory, "/", link->name) : NULL);
    free(directory);
    if (opened && crc_of(debug->bytes, debug->size) == link->crc)
        return true;
    elf_view_close(debug);
    return false;
}

/* The directory of FILE, below two others, and WITHIN it. */
static char *directory_of(const char *prefix, const char *between, const char *file,
                          const char *within)
{
    char *path;
    const char *slash = strrchr(file, '/');
    int length = slash ? (int)(slash - file) : 0;
    return asprintf(&path, "%s%s%.*s/%s", prefix, between, length, file, within) < 0 ? NULL : path;
}

static bool open_by_link_below(struct elf_view *debug, const struct debug_link *link,
                               const char *file, const char *prefix)
{
    return open_link_in(debug, link, directory_of(prefix, "", file, ""),
                        directory_of(prefix, "", file, "")) ||
           open_link_in(debug, link, directory_of(prefix, "", file, ".debug"),
                        directory_of(prefix, "", file, "")) ||
           open_link_in(debug, link, directory_of(prefix, debug_dir, file, ""),
                        text_of(prefix, debug_dir, ""));
}

/* ---- Either ---- */

static bool open_below(struct elf_view *debug, const struct build_id *id,
                       const struct debug_link *link, const char *file, const char *prefix)
{
    return (id->size && open_by_id_below(debug, id, prefix)) ||
           (link && open_by_link_below(debug, link, file, prefix));
}

void debug_file_open(struct elf_view *debug, struct elf_view *view, const struct build_id *wanted,
                     const char *path, const char *root)
{
    struct debug_link link;
    bool linked = path[0] == '/' && read_link(view, &link);
    const struct build_id *id = view->build_id.size ? &view->build_id : wanted;
    const struct debug_link *by_link = linked ? &link : NULL;
    if (!root || !open_below(debug, id, by_link, path, root))
        open_below(debug, id, by_link, path, "");
}

/* ---- What several have in common ---- */

/* A file's .gnu_debugaltlink: a name, and the build-id. */
struct common_link {
    const char *name;
    struct build_id id;
};

static bool read_common_link(struct elf_view *view, struct common_link *link)
{
    struct byte_cursor cursor;
    if (!read_name(view, ".gnu_debugaltlink", &link->name, &cursor))
        return false;
    link->id.size = cursor_left(&cursor);
    if (!link->id.size || link->id.size > BUILD_ID_BYTES)
        return false;
    memcpy(link->id.bytes, cursor_bytes(&cursor, link->id.size), link->id.size);
    return true;
}

/* A name that is no path from the root on is meant from the directory of OF. */
static bool open_common_at(struct elf_view *common, const struct common_link *link,
                           const char *prefix, const char *of)
{
    char *directory = directory_of("", "", of, "");
    char *path = link->name[0] == '/' ? text_of(prefix, link->name, "")
                 : directory          ? text_of(directory, "/", link->name)
                                      : NULL;
    free(directory);
    if (open_in(common, text_of(prefix, debug_dir, ""), path) &&
        build_id_is(&common->build_id, &link->id))
        return true;
    elf_view_close(common);
    return false;
}

static bool open_common_below(struct elf_view *common, const struct common_link *link,
                              const char *prefix, const char *of)
{
    return open_by_id_below(common, &link->id, prefix) || open_common_at(common, link, prefix, of);
}

void debug_file_open_common(struct elf_view *common, struct elf_view *view, const char *root)
{
    struct common_link link;
    *common = (struct elf_view){0};
    char *of = view->path && read_common_link(view, &link) ? realpath(view->path, NULL) : NULL;
    if (of && (!root || !open_common_below(common, &link, root, of)))
        open_common_below(common, &link, "", of);
    free(of);
}
