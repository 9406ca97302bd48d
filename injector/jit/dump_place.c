/* See dump_place.h. */
#include "injector/jit/dump_place.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

static const char deleted[] = " (deleted)";

enum file_identity dump_place_compare(const struct perf_map *map, dev_t dev, ino_t ino)
{
    if (!map->has_inode || major(dev) != map->maj || minor(dev) != map->min)
        return FILE_UNKNOWN;
    return ino == map->ino ? FILE_SAME : FILE_OTHER;
}

/* ---- Is the process still there? ---- */

/* The first line of /proc/PID/FILE that begins with KEY, or simply the first, into LINE. */
static bool read_proc(uint32_t pid, const char *file, const char *key, char *line, int bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/%s", pid, file);
    FILE *stream = fopen(path, "r");
    bool found = false;
    while (stream && !found && fgets(line, bytes, stream))
        found = strncmp(line, key, strlen(key)) == 0;
    if (stream)
        fclose(stream);
    return found;
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* When process PID was started, on CLOCK_MONOTONIC: field 22 of stat, in ticks since boot. */
static bool start_ns(uint32_t pid, int64_t *start)
{
    char line[1024];
    unsigned long long ticks;
    if (!read_proc(pid, "stat", "", line, sizeof line))
        return false;
    const char *rest = strrchr(line, ')');
    if (!rest || sscanf(rest + 1,
                        " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                        "%*d %llu",
                        &ticks) != 1)
        return false;
    int64_t slept = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
    *start = (int64_t)(ticks * (1000000000ull / (unsigned long long)sysconf(_SC_CLK_TCK))) - slept;
    return true;
}

/* The process that has LIFE's pid here and now is the one that was recorded: it did not end in the recording, and it was
 * started before anything is known of it.  A process that took over its pid was started later; on another machine, or after
 * a reboot, it may not have been, but then the files differ. */
bool dump_place_lives(const struct profile *profile, const struct process_life *life,
                      uint32_t *namespace_pid)
{
    enum { TICK_NS = 20000000 };
    char line[256];
    int64_t start;
    if (!perf_file_uses_clock(profile->file, CLOCK_MONOTONIC) ||
        (life->end_ns != UINT64_MAX && !life->execed) || !start_ns(life->pid, &start) ||
        !read_proc(life->pid, "status", "NSpid:", line, sizeof line))
        return false;
    size_t count;
    const struct profile_map *maps = profile_maps_of(profile, life->pid, &count);
    uint64_t seen_ns = life->begin.time_ns;
    for (size_t i = 0; i < count && seen_ns == 0; i++)
        seen_ns = maps[i].time_ns;
    if (seen_ns == 0 && profile->sample_count)
        seen_ns = profile->sample_times_ns[profile->sample_count - 1];
    *namespace_pid = (uint32_t)strtoul(strrchr(line, '\t') + 1, NULL, 10);
    return start <= (int64_t)seen_ns + TICK_NS;
}

/* ---- Where it may be ---- */

/* A copy of MAP's path without " (deleted)", behind PREFIX. */
static char *path_below(const char *prefix, const struct perf_map *map)
{
    size_t length = strlen(map->filename), tail = sizeof deleted - 1;
    char *path;
    if (length > tail && strcmp(map->filename + length - tail, deleted) == 0)
        length -= tail;
    return asprintf(&path, "%s%s%.*s", prefix, prefix[0] && map->filename[0] != '/' ? "/" : "",
                    (int)length, map->filename) < 0
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
