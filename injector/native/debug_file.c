/* See debug_file.h.  Source: GDB manual, "Debugging Information in Separate Files". */
#include "injector/native/debug_file.h"

#include "injector/files/file_bytes.h"
#include "injector/files/regular_file.h"
#include "jitdump/format/byte_cursor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char debug_dir[] = "/usr/lib/debug";

/* ---- By build-id ---- */

static bool open_by_id_below(struct elf_view *debug, const struct build_id *id, const char *prefix)
{
    char hex[BUILD_ID_HEX_BYTES], *path;
    build_id_hex(hex, id);
    if (asprintf(&path, "%s%s/.build-id/%.2s/%s.debug", prefix, debug_dir, hex, hex + 2) < 0)
        return false;
    int result = elf_view_open(debug, path, 0);
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

/* A file's .gnu_debuglink: a name, padded to 4, and the CRC. */
struct debug_link {
    const char *name;
    uint32_t crc;
};

static bool read_link(const struct elf_view *view, struct debug_link *link)
{
    size_t size = 0;
    uint64_t addr;
    const uint8_t *bytes = elf_view_section(view, ".gnu_debuglink", &size, &addr);
    if (!bytes)
        return false;
    struct byte_cursor cursor = byte_cursor_over(bytes, size, false);
    link->name = cursor_cstr(&cursor);
    cursor_skip(&cursor, (4 - cursor.offset % 4) % 4);
    link->crc = cursor_u32(&cursor);
    return !cursor.failed && link->name[0] && !strchr(link->name, '/');
}

static bool open_link_at(struct elf_view *debug, const struct debug_link *link, char *path)
{
    int result = path ? elf_view_open(debug, path, 0) : -1;
    free(path);
    if (!result && crc_of(debug->bytes, debug->size) == link->crc)
        return true;
    elf_view_close(debug);
    return false;
}

static char *path_of(const char *prefix, const char *between, const char *file, const char *in,
                     const char *name)
{
    char *path;
    const char *slash = strrchr(file, '/');
    int length = slash ? (int)(slash - file) : 0;
    return asprintf(&path, "%s%s%.*s%s/%s", prefix, between, length, file, in, name) < 0 ? NULL
                                                                                         : path;
}

static bool open_by_link_below(struct elf_view *debug, const struct debug_link *link,
                               const char *file, const char *prefix)
{
    return open_link_at(debug, link, path_of(prefix, "", file, "", link->name)) ||
           open_link_at(debug, link, path_of(prefix, "", file, "/.debug", link->name)) ||
           open_link_at(debug, link, path_of(prefix, debug_dir, file, "", link->name));
}

/* The bytes of FD have this CRC. */
static bool has_crc(int fd, const struct stat *status, uint32_t crc)
{
    const void *bytes = status->st_size ? file_bytes(fd, status) : NULL;
    bool has = bytes && crc_of(bytes, (size_t)status->st_size) == crc;
    if (bytes)
        munmap((void *)(uintptr_t)bytes, (size_t)status->st_size);
    return has;
}

int debug_file_linked(const char *path, const char *name, uint32_t crc, char **found)
{
    static const char *const places[][2] = {{"", ""}, {"", "/.debug"}, {debug_dir, ""}};
    for (size_t i = 0; !strchr(name, '/') && i < sizeof places / sizeof places[0]; i++) {
        char *debug = path_of("", places[i][0], path, places[i][1], name);
        struct stat status;
        int fd = debug ? regular_file_open(debug, 0, &status) : -1;
        if (fd >= 0 && has_crc(fd, &status, crc)) {
            *found = debug;
            return fd;
        }
        if (fd >= 0)
            close(fd);
        free(debug);
    }
    return -1;
}

/* ---- Either ---- */

static bool open_below(struct elf_view *debug, const struct build_id *id,
                       const struct debug_link *link, const char *file, const char *prefix)
{
    return (id->size && open_by_id_below(debug, id, prefix)) ||
           (link && open_by_link_below(debug, link, file, prefix));
}

void debug_file_open(struct elf_view *debug, const struct elf_view *view,
                     const struct build_id *wanted, const char *path, const char *root)
{
    struct debug_link link;
    bool linked = path[0] == '/' && read_link(view, &link);
    const struct build_id *id = view->build_id.size ? &view->build_id : wanted;
    const struct debug_link *by_link = linked ? &link : NULL;
    if (!root || !open_below(debug, id, by_link, path, root))
        open_below(debug, id, by_link, path, "");
}
