/* See live_process.h.
 *
 * /proc/PID/status  "Uid:" real, effective, ...; "NSpid:" the pid in each namespace, its own last
 */
#include "injector/recording/host/live_process.h"

#include "injector/files/process_stat.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)

#define PF_EXITING 0x4u /* among the flags: it is on its way out */

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* PID's stat from WORD on, kept in LINE; NULL: there is no such process. */
static const char *read_stat(char line[PROCESS_STAT_BYTES], uint32_t pid,
                             enum process_stat_word word)
{
    return process_stat_word(process_stat_read(line, (pid_t)pid), word);
}

static bool read_start(struct live_process *live, uint32_t pid)
{
    char line[PROCESS_STAT_BYTES];
    const char *at = read_stat(line, pid, PROCESS_START);
    if (!at)
        return false;
    uint64_t ticks = strtoull(at, NULL, 10), hz = (uint64_t)sysconf(_SC_CLK_TCK);
    uint64_t boot_ns = clock_ns(CLOCK_BOOTTIME);
    uint64_t boot_wall_ns = clock_ns(CLOCK_REALTIME) - boot_ns;
    uint64_t slept_ns = boot_ns - clock_ns(CLOCK_MONOTONIC);
    live->started_boot_ns = ticks / hz * NS_PER_S + ticks % hz * (NS_PER_S / hz);
    live->started_mono_ns = (int64_t)(live->started_boot_ns - slept_ns);
    live->started_wall_ns = boot_wall_ns + live->started_boot_ns;
    return true;
}

static bool read_status(struct live_process *live, uint32_t pid)
{
    char path[64], line[1024];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/status", pid);
    FILE *file = fopen(path, "re");
    live->namespace_pid = pid;
    while (file && fgets(line, sizeof line, file)) {
        unsigned real, effective;
        const char *last = strrchr(line, '\t');
        if (sscanf(line, "Uid:\t%u\t%u", &real, &effective) == 2) {
            live->uid = effective;
            found = true;
        }
        if (strncmp(line, "NSpid:", 6) == 0 && last)
            live->namespace_pid = (uint32_t)strtoul(last + 1, NULL, 10);
    }
    if (file)
        fclose(file);
    return found;
}

static bool is_other(const struct stat *one, const struct stat *other)
{
    return one->st_dev != other->st_dev || one->st_ino != other->st_ino;
}

const char *live_process_root(char text[LIVE_ROOT_BYTES], uint32_t pid)
{
    snprintf(text, LIVE_ROOT_BYTES, "/proc/%" PRIu32 "/root", pid);
    return text;
}

/* As stat(2), with PATH as PID sees it. */
static int stat_theirs(uint32_t pid, const char *path, struct stat *its)
{
    char *theirs, root[LIVE_ROOT_BYTES];
    if (asprintf(&theirs, "%s%s", live_process_root(root, pid), path) < 0)
        return -1;
    int result = stat(theirs, its);
    free(theirs);
    return result;
}

/* Whether PID sees another directory at PATH than this program. */
static bool has_other(uint32_t pid, const char *path)
{
    struct stat its, ours;
    return stat_theirs(pid, path, &its) == 0 && stat(path, &ours) == 0 && is_other(&its, &ours);
}

bool live_process_read(struct live_process *live, uint32_t pid, uint64_t recorded_wall_ns)
{
    *live = (struct live_process){0};
    if (!read_start(live, pid) || live->started_wall_ns > recorded_wall_ns ||
        !read_status(live, pid))
        return false;
    live->other_root = has_other(pid, "/");
    live->other_tmp = has_other(pid, "/tmp");
    return true;
}

bool live_process_has_other_root(uint32_t pid)
{
    return has_other(pid, "/");
}

char *live_process_root_here(uint32_t pid)
{
    char link[LIVE_ROOT_BYTES], path[PATH_MAX];
    struct stat its, ours;
    ssize_t bytes = readlink(live_process_root(link, pid), path, sizeof path - 1);
    if (bytes <= 1 || path[0] != '/')
        return NULL;
    path[bytes] = '\0';
    return stat_theirs(pid, "/", &its) == 0 && stat(path, &ours) == 0 && !is_other(&its, &ours)
               ? strdup(path)
               : NULL;
}

uint64_t live_process_own_mounts(void)
{
    struct stat own;
    return stat("/proc/self/ns/mnt", &own) == 0 ? own.st_ino : 0;
}

bool live_process_goes_on(uint32_t pid)
{
    char line[PROCESS_STAT_BYTES];
    const char *flags = read_stat(line, pid, PROCESS_FLAGS);
    return flags && !(strtoul(flags, NULL, 10) & PF_EXITING); /* nor is it a zombie */
}

bool live_process_hides(uint32_t pid, const char *path)
{
    char link[64];
    struct stat its, ours;
    snprintf(link, sizeof link, "/proc/%" PRIu32 "/ns/mnt", pid);
    if (stat(link, &its) || stat("/proc/self/ns/mnt", &ours) || !is_other(&its, &ours))
        return false;
    return stat_theirs(pid, path, &its) || stat(path, &ours) || is_other(&its, &ours);
}

uint32_t live_process_parent(uint32_t pid)
{
    char line[PROCESS_STAT_BYTES];
    const char *parent = read_stat(line, pid, PROCESS_PARENT);
    return parent ? (uint32_t)strtoul(parent, NULL, 10) : 0;
}
