/* See dump_place.h. */
#include "injector/jit/dump_place.h"

#include "injector/jit/live_process.h"
#include "injector/perf_data/perf_time.h"
#include "injector/perf_data/recording_host.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

enum file_identity dump_place_compare(const struct perf_map *map, dev_t dev, ino_t ino)
{
    if (!map->has_inode || major(dev) != map->maj || minor(dev) != map->min)
        return FILE_UNKNOWN;
    return ino == map->ino ? FILE_SAME : FILE_OTHER;
}

/* ---- Is the process still there? ---- */

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The process that has LIFE's pid here and now is the one that was recorded: it did not end in the recording, and it was
 * started before anything is known of it.  A process that took over its pid was started later; on another machine, or after
 * a reboot, it may not have been, but then the files differ. */
bool dump_place_lives(const struct profile *profile, const struct process_life *life,
                      uint32_t *namespace_pid)
{
    enum { TICK_NS = 20000000 };
    struct live_process live;
    if (!perf_file_uses_clock(profile->file, CLOCK_MONOTONIC) ||
        (life->end_ns != UINT64_MAX && !life->execed) ||
        !live_process_read(&live, life->pid, UINT64_MAX))
        return false;
    size_t count;
    const struct profile_map *maps = profile_maps_of(profile, life->pid, &count);
    uint64_t seen_ns = life->begin.time_ns;
    for (size_t i = 0; i < count && seen_ns == 0; i++)
        seen_ns = maps[i].time_ns;
    if (seen_ns == 0)
        seen_ns = profile_last_sample_ns(profile);
    *namespace_pid = live.namespace_pid;
    int64_t slept = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
    int64_t started = (int64_t)live.started_boot_ns - slept;
    return started < 0 || (uint64_t)started <= perf_time_after(seen_ns, TICK_NS);
}

/* ---- Where it may be ---- */

/* Whether the process that mapped MAP had other mounts than this one has, as far as perf record --namespaces tells. */
static bool has_other_mounts(const struct profile *profile, const struct profile_map *map)
{
    struct stat here;
    uint64_t inode = profile_mount_namespace_of(profile, map->map.pid, map->time_ns);
    return inode && stat("/proc/self/ns/mnt", &here) == 0 && here.st_ino != inode;
}

void dump_place_missing(char text[DUMP_PLACE_TEXT_BYTES], const struct profile *profile,
                        const struct profile_map *map, bool foreign, const char *root)
{
    struct recording_host host;
    recording_host_read(&host, profile->file);
    const char *what = "No such file or directory";
    if (root)
        snprintf(text, DUMP_PLACE_TEXT_BYTES, "%s, nor below --root %s", what, root);
    else if (!recording_host_is_here(&host))
        snprintf(text, DUMP_PLACE_TEXT_BYTES,
                 "%s: it was recorded on %s; --root DIR says where that machine's files are", what,
                 host.name);
    else if (foreign || has_other_mounts(profile, map))
        snprintf(
            text, DUMP_PLACE_TEXT_BYTES,
            "%s: if the process was in a container, --root DIR says where its root file system is",
            what);
    else
        snprintf(text, DUMP_PLACE_TEXT_BYTES, "%s", what);
}

/* A copy of MAP's path without " (deleted)", behind PREFIX. */
static char *path_below(const char *prefix, const struct perf_map *map)
{
    char *path;
    return asprintf(&path, "%s%s%.*s", prefix, prefix[0] && map->filename[0] != '/' ? "/" : "",
                    (int)perf_map_name_length(map->filename), map->filename) < 0
               ? NULL
               : path;
}

struct search {
    struct dump_place *place;
    const struct perf_map *map;
    bool found, replaced;
};

/* Look at the map's path behind PREFIX.  TRUSTED: a file that can't be compared is taken for the right one. */
static int look(struct search *search, const char *prefix, bool trusted)
{
    struct stat status;
    char *path = path_below(prefix, search->map);
    if (!path)
        return -1;
    enum file_identity identity = FILE_UNKNOWN;
    bool there = stat(path, &status) == 0;
    if (there && S_ISREG(status.st_mode)) /* of anything else jit_dump_open will say so */
        identity = dump_place_compare(search->map, status.st_dev, status.st_ino);
    search->replaced = search->replaced || (there && identity == FILE_OTHER);
    search->found = there && (identity == FILE_SAME || (identity == FILE_UNKNOWN && trusted));
    if (search->found)
        *search->place =
            (struct dump_place){path, identity == FILE_SAME, status.st_dev, status.st_ino};
    else
        free(path);
    return 0;
}

int dump_place_find(struct dump_place *place, const struct profile *profile,
                    const struct process_life *life, const struct profile_map *map, bool foreign,
                    const char *root, enum dump_place_result *result)
{
    struct search search = {place, &map->map, false, false};
    char own_root[64];
    uint32_t namespace_pid;
    snprintf(own_root, sizeof own_root, "/proc/%" PRIu32 "/root", life->pid);
    if (root && look(&search, root, true))
        return -1;
    if (!search.found && look(&search, "", !foreign || !map->map.has_inode))
        return -1;
    if (!search.found && look(&search, own_root, dump_place_lives(profile, life, &namespace_pid)))
        return -1;
    *result = search.found      ? DUMP_PLACE_FOUND
              : search.replaced ? DUMP_PLACE_REPLACED
                                : DUMP_PLACE_MISSING;
    return 0;
}
