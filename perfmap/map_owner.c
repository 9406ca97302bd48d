/* See map_owner.h.
 *
 * /proc/self is a link to the pid of the reading process, in the pid namespace of that /proc. */
#include "perfmap/map_owner.h"
#include "jitdump/guest/process_start.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    DESCRIPTORS_MAX = 1024, /* that are examined: the usual limit */
    NS_PER_S = 1000000000
};

pid_t pm_name_pid(void)
{
    char text[24];
    ssize_t size = readlink("/proc/self", text, sizeof text - 1);
    text[size > 0 ? size : 0] = '\0';
    char *end;
    long pid = strtol(text, &end, 10);
    return pid > 0 && pid <= INT32_MAX && *end == '\0' ? (pid_t)pid : getpid();
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether FD writes to the file that has STATUS.  Sets *FLAGS. */
static bool writes_to(int fd, const struct stat *status, int *flags)
{
    struct stat other;
    *flags = fcntl(fd, F_GETFL);
    return *flags != -1 && (*flags & O_ACCMODE) != O_RDONLY && fstat(fd, &other) == 0 &&
           same_file(&other, status);
}

bool pm_is_written_here(const struct stat *status)
{
    int flags;
    for (int fd = 0; fd < DESCRIPTORS_MAX; fd++)
        if (writes_to(fd, status, &flags))
            return true;
    return false;
}

/* The program may close OTHER at any moment and reuse its number for another file; it does not know
 * the number of a copy. */
static void let_append(int other, const struct stat *status)
{
    int flags, copy = fcntl(other, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (copy < 0)
        return;
    if (writes_to(copy, status, &flags))
        fcntl(copy, F_SETFL, flags | O_APPEND);
    close(copy);
}

bool pm_let_others_append(int fd)
{
    struct stat status;
    int flags;
    bool others = false;
    if (fstat(fd, &status) != 0)
        return false;
    for (int other = 0; other < DESCRIPTORS_MAX; other++) {
        if (other == fd || !writes_to(other, &status, &flags))
            continue;
        others = true;
        if (!(flags & O_APPEND))
            let_append(other, &status);
    }
    return others;
}

/* ---- Since this process started ---- */

static int64_t ns_of(const struct timespec *time)
{
    return (int64_t)time->tv_sec * NS_PER_S + time->tv_nsec;
}

bool pm_is_of_this_life(const struct stat *status)
{
    struct timespec since_boot, today;
    uint64_t start_ns;
    if (!process_start(&start_ns) || clock_gettime(CLOCK_BOOTTIME, &since_boot) != 0 ||
        clock_gettime(CLOCK_REALTIME, &today) != 0)
        return false;
    int64_t age_ns = ns_of(&since_boot) - (int64_t)start_ns;
    /* Two ticks: the start is rounded, and so are the times of files. */
    return ns_of(&status->st_mtim) > ns_of(&today) - age_ns + 2 * (int64_t)process_tick_ns();
}

bool pm_has_own_descriptors(pid_t parent)
{
    /* 0: one table.  The parent of a new pid namespace's first process has no pid there. */
    return getppid() != 0 && syscall(SYS_kcmp, getpid(), parent, KCMP_FILES, 0, 0) > 0;
}
