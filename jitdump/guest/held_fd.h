/* A file descriptor that the program may close without our knowledge.
 *
 * Daemons close every descriptor they inherited.  The number may then refer to another file, which
 * growing or truncating would destroy; so every use checks first.
 */
#ifndef JITDUMP_HELD_FD_H
#define JITDUMP_HELD_FD_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct held_fd {
    int number; /* -1: none */
    dev_t device;
    ino_t inode;
};

/* Move FD above the standard streams' numbers: a program that has closed one of these may reopen
 * the number, or print to it, at any time.  Closes FD.  Returns -1 with errno on failure. */
static inline int jd_fd_above_standard_streams(int fd)
{
    if (fd > STDERR_FILENO || fd < 0)
        return fd;
    int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), error = errno;
    syscall(SYS_close, fd);
    errno = error == EINVAL ? EMFILE : error; /* the limit is three descriptors */
    return above;
}

/* Returns false, with errno, if fstat fails on FD. */
static inline bool jd_fd_hold(struct held_fd *held, int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return false;
    held->number = fd;
    held->device = status.st_dev;
    held->inode = status.st_ino;
    return true;
}

/* Whether the number still refers to the file, and then its *STATUS. */
static inline bool jd_fd_is_ours_now(const struct held_fd *held, struct stat *status)
{
    return held->number >= 0 && fstat(held->number, status) == 0 &&
           status->st_dev == held->device && status->st_ino == held->inode;
}

static inline bool jd_fd_is_ours(const struct held_fd *held)
{
    struct stat status;
    return jd_fd_is_ours_now(held, &status);
}

/* Release the file's lock: children that inherited the descriptor share it and would keep it as
 * long as they live. */
static inline void jd_fd_unlock(const struct held_fd *held)
{
    if (jd_fd_is_ours(held))
        flock(held->number, LOCK_UN);
}

/* Returns 0 or the negative errno of close(2), which is a cancellation point in libc.  Does nothing
 * the second time. */
static inline int jd_fd_close(struct held_fd *held)
{
    int error = jd_fd_is_ours(held) && syscall(SYS_close, held->number) != 0 ? -errno : 0;
    held->number = -1;
    return error;
}

/* In a forked child: close the descriptor inherited from process OWNER, unless the two share one
 * descriptor table (clone(CLONE_FILES)), where closing it would close the owner's.  If the kernel
 * does not say, they have separate tables, as after fork. */
static inline void jd_fd_close_inherited(struct held_fd *held, pid_t owner)
{
    enum { KCMP_FILES = 2 }; /* linux/kcmp.h */
#ifdef SYS_kcmp
    if (syscall(SYS_kcmp, getpid(), owner, KCMP_FILES, 0, 0) == 0) {
        held->number = -1;
        return;
    }
#endif
    jd_fd_close(held);
}

#endif
