/* See dump_probe.h. */
#include "injector/claim/dump_probe.h"

#include "injector/files/regular_file.h"
#include "jitdump/byte_cursor.h"
#include "jitdump/jitdump_format.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The largest pages that Linux maps files in. */
#define MAX_MARKER_BYTES (UINT64_C(64) << 10)

enum { FIRST_SLOTS = 64, HEADER_PID = 20 };

bool dump_probe_may_be(const struct perf_map *map)
{
    return !map->data && map->pgoff == 0 && map->len <= MAX_MARKER_BYTES &&
           map->filename[0] == '/' && !perf_map_is_memory(map);
}

/* ---- One file ---- */

static bool read_header(int fd, uint32_t *pid)
{
    uint8_t bytes[JITHEADER_BYTES];
    if (pread(fd, bytes, sizeof bytes, 0) != sizeof bytes)
        return false;
    struct byte_cursor cursor = byte_cursor_over(bytes, sizeof bytes, false);
    uint32_t magic = cursor_u32(&cursor);
    cursor = byte_cursor_over(bytes, sizeof bytes, magic == JITDUMP_MAGIC_SWAPPED);
    cursor_skip(&cursor, HEADER_PID);
    *pid = cursor_u32(&cursor);
    return magic == JITDUMP_MAGIC || magic == JITDUMP_MAGIC_SWAPPED;
}

static bool read_path(const char *path, uint32_t *pid)
{
    struct stat status;
    int fd = regular_file_open(path, &status);
    if (fd < 0)
        return false;
    bool is_dump = read_header(fd, pid);
    close(fd);
    return is_dump;
}

/* PREFIX and the map's path. */
static bool read_below(const char *prefix, const char *name, uint32_t *pid, bool *failed)
{
    char *path;
    if (asprintf(&path, "%s%.*s", prefix, (int)perf_map_name_length(name), name) < 0) {
        *failed = true;
        return false;
    }
    bool is_dump = read_path(path, pid);
    free(path);
    return is_dump;
}

static struct probed_file read_file(const struct dump_probe *probe, const char *name, bool *failed)
{
    struct probed_file file = {.path = name};
    file.is_dump = (probe->root && read_below(probe->root, name, &file.pid, failed)) ||
                   read_below("", name, &file.pid, failed);
    return file;
}

/* ---- What was opened ---- */

static size_t slot_of(const struct dump_probe *probe, const char *path)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (const char *at = path; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    size_t slot = (size_t)(hash ^ hash >> 32) & (probe->slots - 1);
    while (probe->files[slot].path && strcmp(probe->files[slot].path, path) != 0)
        slot = (slot + 1) & (probe->slots - 1);
    return slot;
}

/* Room for one more, and every second slot free. */
static bool make_room(struct dump_probe *probe)
{
    struct dump_probe larger = *probe;
    if (2 * (probe->count + 1) <= probe->slots)
        return true;
    larger.slots = probe->slots ? 2 * probe->slots : FIRST_SLOTS;
    larger.files = calloc(larger.slots, sizeof *larger.files);
    if (!larger.files)
        return false;
    for (size_t i = 0; i < probe->slots; i++)
        if (probe->files[i].path)
            larger.files[slot_of(&larger, probe->files[i].path)] = probe->files[i];
    free(probe->files);
    *probe = larger;
    return true;
}

/* While the process lives, its own view of the file system. */
static bool read_of_process(const struct perf_map *map, uint32_t *pid, bool *failed)
{
    char own_root[64];
    struct stat own, ours;
    snprintf(own_root, sizeof own_root, "/proc/%" PRIu32 "/root/", map->pid);
    if (stat(own_root, &own) || stat("/", &ours) ||
        (own.st_dev == ours.st_dev && own.st_ino == ours.st_ino))
        return false;
    return read_below(own_root, map->filename, pid, failed);
}

bool dump_probe_file(struct dump_probe *probe, const struct perf_map *map, uint32_t *pid,
                     bool *failed)
{
    if (!make_room(probe)) {
        *failed = true;
        return false;
    }
    struct probed_file *file = &probe->files[slot_of(probe, map->filename)];
    if (!file->path) {
        *file = read_file(probe, map->filename, failed);
        probe->count++;
    }
    *pid = file->pid;
    return file->is_dump || read_of_process(map, pid, failed);
}

void dump_probe_free(struct dump_probe *probe)
{
    free(probe->files);
    *probe = (struct dump_probe){0};
}
