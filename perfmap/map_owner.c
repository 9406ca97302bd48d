/* See map_owner.h.
 *
 * /proc/self is a link to the pid of who reads it, in the pid namespace of that /proc. */
#include "perfmap/map_owner.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DESCRIPTORS_MAX = 1024 /* looked at: the usual limit */ };

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

void pm_let_others_append(int fd)
{
    struct stat status;
    int flags;
    if (fstat(fd, &status) != 0)
        return;
    for (int other = 0; other < DESCRIPTORS_MAX; other++)
        if (other != fd && writes_to(other, &status, &flags) && !(flags & O_APPEND))
            fcntl(other, F_SETFL, flags | O_APPEND);
}

bool pm_has_own_descriptors(pid_t parent)
{
    /* 0: one table.  The parent of a new pid namespace's first process has no pid there. */
    return getppid() != 0 && syscall(SYS_kcmp, getpid(), parent, KCMP_FILES, 0, 0) > 0;
}
