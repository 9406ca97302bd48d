/* See map_owner.h.
 *
 * /proc/self is a link to the pid of the reading process, in the pid namespace of that /proc. */
#include "perfmap/map_owner.h"

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
    START_FIELD = 22,       /* of /proc/self/stat, in ticks since boot */
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

/* Field 22; the second one, in parentheses, may contain anything. */
static bool read_start(int64_t *ticks)
{
    char line[1024];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t size = read(fd, line, sizeof line - 1);
    close(fd);
    line[size > 0 ? size : 0] = '\0';
    const char *field = strrchr(line, ')');
    for (int number = 2; field && number < START_FIELD; number++)
        field = strchr(field + 1, ' ');
    *ticks = field ? strtoll(field, NULL, 10) : 0;
    return *ticks > 0;
}

/* When the machine was started, by CLOCK_REALTIME.  On a busy machine this thread may wait for a
 * processor between the two clocks, but hardly each time. */
static bool machine_start(int64_t *start_ns)
{
    enum { TRIES = 4 };
    struct timespec since_boot, today;
    *start_ns = INT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        if (clock_gettime(CLOCK_BOOTTIME, &since_boot) != 0 ||
            clock_gettime(CLOCK_REALTIME, &today) != 0)
            return false;
        const int64_t ns = ns_of(&today) - ns_of(&since_boot);
        *start_ns = ns < *start_ns ? ns : *start_ns;
    }
    return true;
}

bool pm_is_of_this_life(const struct stat *status)
{
    int64_t ticks, boot_ns, tick_ns = NS_PER_S / sysconf(_SC_CLK_TCK);
    if (!read_start(&ticks) || !machine_start(&boot_ns))
        return false;
    /* Two ticks: the start is rounded, and so are the times of files. */
    return ns_of(&status->st_mtim) > boot_ns + (ticks + 2) * tick_ns;
}

bool pm_has_own_descriptors(pid_t parent)
{
    /* 0: one table.  The parent of a new pid namespace's first process has no pid there. */
    return getppid() != 0 && syscall(SYS_kcmp, getpid(), parent, KCMP_FILES, 0, 0) > 0;
}
