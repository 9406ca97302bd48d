/* See dump_probe.h. */
#include "injector/log/owner/dump_probe.h"

#include "injector/files/regular_file.h"
#include "injector/recording/host/live_process.h"
#include "injector/recording/host/mapped_path.h"
#include "jitdump/format/byte_cursor.h"
#include "jitdump/format/jitdump_format.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The largest pages that Linux maps files in. */
#define MAX_MARKER_BYTES (UINT64_C(64) << 10)

enum { HEADER_PID = 20 };

bool dump_probe_may_be(const struct perf_map *map)
{
    return !map->data && map->pgoff == 0 && map->len <= MAX_MARKER_BYTES &&
           map->filename[0] == '/' && !perf_map_is_memory(map);
}

struct probed_file {
    const char *path; /* in the profile */
    bool is_dump;
    uint32_t pid;
};

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

bool dump_probe_path(const char *path, uint32_t *pid)
{
    struct stat status;
    int fd = regular_file_open(path, 0, &status);
    if (fd < 0)
        return false;
    bool is_dump = read_header(fd, pid);
    close(fd);
    return is_dump;
}

static bool read_below(const char *root, const char *name, uint32_t *pid, bool *failed)
{
    char *path = mapped_path(root, name);
    if (!path) {
        *failed = true;
        return false;
    }
    bool is_dump = dump_probe_path(path, pid);
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

static int compare(const void *left, const void *right)
{
    const struct probed_file *a = left, *b = right;
    return strcmp(a->path, b->path);
}

/* The result of the first look at the file NAME.  NULL without memory.
 */
static const struct probed_file *file_of(struct dump_probe *probe, const char *name, bool *failed)
{
    const struct probed_file wanted = {.path = name};
    struct probed_file *const *known = tfind(&wanted, &probe->files, compare);
    if (known)
        return *known;
    struct probed_file *file = malloc(sizeof *file);
    if (!file)
        return NULL;
    *file = read_file(probe, name, failed);
    if (tsearch(file, &probe->files, compare))
        return file;
    free(file);
    return NULL;
}

/* While the process lives, its own view of the file system. */
static bool read_of_process(const struct perf_map *map, uint32_t *pid, bool *failed)
{
    char own_root[LIVE_ROOT_BYTES];
    if (!live_process_has_other_root(map->pid))
        return false;
    live_process_root(own_root, map->pid);
    return read_below(own_root, map->filename, pid, failed);
}

bool dump_probe_file(struct dump_probe *probe, const struct perf_map *map, uint32_t *pid,
                     bool *failed)
{
    const struct probed_file *file = file_of(probe, map->filename, failed);
    if (!file) {
        *failed = true;
        return false;
    }
    *pid = file->pid;
    return file->is_dump || read_of_process(map, pid, failed);
}

void dump_probe_free(struct dump_probe *probe)
{
    tdestroy(probe->files, free);
    *probe = (struct dump_probe){0};
}
