/* See map_file.h. */
#include "perfmap/map_file.h"
#include "perfmap/map_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    PID_MAX_DIGITS = 20,
    OPEN_WAIT_NS = 1000000, /* for another thread that is opening the file, */
    OPEN_WAITS = 100,       /* this many times */
    LIMIT_NEAR_BYTES = 1 << 20,
    ANCHOR_BYTES = 32,
    DIGEST_BITS = 24
};

/* Kept out of line, so that the usual call does not need its stack. */
#define RARE __attribute__((noinline))

/* ---- Creation ---- */

/* A page that the kernel wipes in a child (MADV_WIPEONFORK, Linux 4.14).  NULL if it does not:
 * qemu-user up to 7 returns 0 for any advice and ignores it, so -1 is tried first. */
static volatile uint32_t *new_mark(void)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    uint32_t *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, bytes, -1) == 0 || madvise(page, bytes, MADV_WIPEONFORK) != 0) {
        munmap(page, bytes);
        return NULL;
    }
    *page = 1;
    return page;
}

struct map_file *pm_file_new(const char *dir, struct map_file *parent,
                             struct map_error *first_error, _Atomic uint64_t *lost)
{
    size_t path_bytes = strlen(dir) + sizeof "/perf-.map" + PID_MAX_DIGITS;
    struct map_file *file = calloc(1, sizeof *file + path_bytes);
    if (!file)
        return NULL;
    file->parent = parent;
    file->pid = getpid();
    file->mark = new_mark();
    file->first_error = first_error;
    file->lost = lost;
    atomic_init(&file->fd, -1);
    snprintf(file->path, path_bytes, "%s/perf-%jd.map", dir, (intmax_t)pm_name_pid());
    return file;
}

bool pm_file_is_inherited(const struct map_file *file)
{
    return file->mark ? *file->mark == 0 : file->pid != getpid();
}

void pm_file_free(struct map_file *file)
{
    if (file->mark)
        munmap((void *)(uintptr_t)file->mark, (size_t)sysconf(_SC_PAGESIZE));
    free(file);
}

/* ---- Opening ---- */

static const char *what_is_in_the_way(const struct stat *status)
{
    if (S_ISLNK(status->st_mode))
        return "a symbolic link";
    if (S_ISDIR(status->st_mode))
        return "a directory";
    if (S_ISFIFO(status->st_mode))
        return "a FIFO";
    if (!S_ISREG(status->st_mode))
        return "a socket or device";
    if (status->st_uid != geteuid())
        return "another user's file";
    return "a file that has other hard links";
}

static bool is_plain(const struct stat *status)
{
    return S_ISREG(status->st_mode) && status->st_uid == geteuid() && status->st_nlink == 1;
}

static bool is_of_a_parent(const struct map_file *file, const struct stat *status)
{
    for (const struct map_file *parent = file->parent; parent; parent = parent->parent)
        if (parent->inode == status->st_ino && parent->device == status->st_dev)
            return true;
    return false;
}

/* The file that was closed last, as it was then, for a perfmap_open after perfmap_close: its lines
 * are still valid.  Forgotten by exec, which replaces the code. */
static _Atomic uint64_t closed_inode, closed_bytes;
static _Atomic int64_t closed_ns;

static int64_t changed_ns(const struct stat *status)
{
    return (int64_t)status->st_mtim.tv_sec * 1000000000 + status->st_mtim.tv_nsec;
}

static void keep_closed(const struct stat *status)
{
    atomic_store(&closed_inode, status->st_ino);
    atomic_store(&closed_bytes, (uint64_t)status->st_size);
    atomic_store(&closed_ns, changed_ns(status));
}

static bool was_closed_here(const struct stat *status)
{
    return atomic_load(&closed_inode) == status->st_ino &&
           atomic_load(&closed_bytes) == (uint64_t)status->st_size &&
           atomic_load(&closed_ns) == changed_ns(status);
}

/* Examine an existing file.  Sets *SHARED if it may be the map of another JIT of this process; one
 * left by an earlier process with our pid is removed.  In a directory that everyone may write to,
 * anything else may be a trap. */
static int make_way(struct map_file *file, bool *shared)
{
    struct stat status;
    *shared = false;
    if (lstat(file->path, &status) != 0) {
        if (errno == ENOENT)
            return 0;
        return pm_error_keep(file->first_error, -errno, "%s: cannot look for an old file there: %m",
                             file->path);
    }
    if (!is_plain(&status))
        return pm_error_keep(file->first_error, -EEXIST,
                             "%s: %s is in the way, and is not touched; remove it", file->path,
                             what_is_in_the_way(&status));
    if (is_of_a_parent(file, &status))
        return pm_error_keep(file->first_error, -EEXIST,
                             "%s: is the map of the process that this one was forked from, which "
                             "has the same pid in another namespace; give this one a /proc or a "
                             "directory of its own",
                             file->path);
    *shared =
        was_closed_here(&status) || pm_is_written_here(&status) || pm_is_of_this_life(&status);
    if (!*shared && unlink(file->path) != 0 && errno != ENOENT)
        return pm_error_keep(file->first_error, -errno,
                             "%s: cannot remove the file of an earlier process: %m", file->path);
    return 0;
}

static const char *remedy_for_open(int error)
{
    switch (error) {
    case EEXIST:
        return "; somebody put it there this moment: find out who";
    case ENOENT:
        return "; does the directory exist?";
    case EMFILE:
    case ENFILE:
        return "; raise the limit (ulimit -n)";
    default:
        return "; the directory must be writable";
    }
}

/* Output of the program or libc to descriptors 0 to 2 must not end up in the map. */
static int above_standard(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int error = errno;
    close(fd);
    errno = error;
    return above;
}

/* Returns false, with errno, if it is not the file that make_way saw, or fstat fails. */
static bool identify(struct map_file *file, int fd, bool shared)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return false;
    file->device = status.st_dev;
    file->inode = status.st_ino;
    file->has_links = status.st_nlink > 0;
    errno = EEXIST;
    return !shared || is_plain(&status);
}

/* Returns a descriptor, or -1 with errno. */
static int open_path(struct map_file *file, bool shared)
{
    /* Opened for reading as well: a partial line is compared before it is removed.  O_NONBLOCK:
     * in case it is a FIFO by now. */
    const int flags = O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
    int fd = above_standard(
        open(file->path, flags | (shared ? O_NONBLOCK : O_CREAT | O_EXCL), S_IRUSR | S_IWUSR));
    if (fd < 0 || identify(file, fd, shared))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static int open_file(struct map_file *file)
{
    bool shared;
    int error = make_way(file, &shared);
    if (error)
        return error;
    int fd = open_path(file, shared);
    if (fd < 0)
        return pm_error_keep(file->first_error, -errno, "%s: cannot %s: %m%s", file->path,
                             shared ? "open" : "create", remedy_for_open(errno));
    atomic_store(&file->has_others, shared);
    if (!shared) /* best effort: a umask may have removed the owner's rights */
        (void)!fchmod(fd, S_IRUSR | S_IWUSR);
    atomic_store(&file->fd, fd);
    return 0;
}

int pm_file_open(struct map_file *file)
{
    int error = open_file(file);
    atomic_store(&file->error, error);
    atomic_store(&file->is_open, true);
    return error;
}

/* If several threads of a forked child add at once, wait for the thread that is opening the file.
 * Wait only once and not for long, since that thread may be stopped. */
RARE static bool wait_until_open(struct map_file *file)
{
    const struct timespec pause = {0, OPEN_WAIT_NS};
    for (int i = 0; i < OPEN_WAITS && !atomic_load(&file->is_open); i++) {
        if (atomic_load(&file->is_slow))
            return false;
        nanosleep(&pause, NULL);
    }
    if (!atomic_load(&file->is_open))
        atomic_store(&file->is_slow, true);
    return atomic_load(&file->is_open);
}

/* ---- Appending ---- */

/* The program may have closed the descriptor (as daemons close all they inherited), and the number
 * may refer to another file by now. */
static int look_at(struct map_file *file, int fd, struct stat *status)
{
    bool failed = fstat(fd, status) != 0;
    if (failed && errno != EBADF)
        return pm_error_keep(file->first_error, -errno, "%s: cannot look at it: %m", file->path);
    if (failed || status->st_dev != file->device || status->st_ino != file->inode)
        return pm_error_keep(
            file->first_error, -EBADF,
            "%s: the program closed the file's descriptor; it must keep those that it did not open",
            file->path);
    return 0;
}

/* The anchor is the offset at which one of our lines ends, and a digest of the bytes before it.
 * Both are in one word, so threads set and compare it without a lock.  It shows that another writer
 * has truncated the file, however much that one has written since.
 *
 * Returns 0 if the file has fewer than END bytes, or if it can't be read; then *KNOWN is false. */
static uint64_t anchor_at(int fd, uint64_t end, bool *known)
{
    unsigned char bytes[ANCHOR_BYTES];
    uint64_t size = end < sizeof bytes ? end : sizeof bytes;
    ssize_t got = pread(fd, bytes, (size_t)size, (off_t)(end - size));
    uint32_t digest = 2166136261; /* FNV-1a */
    *known = got >= 0;
    if (got < (ssize_t)size || end >> (64 - DIGEST_BITS))
        return 0;
    for (uint64_t i = 0; i < size; i++)
        digest = (digest ^ bytes[i]) * 16777619;
    return end << DIGEST_BITS | digest >> (32 - DIGEST_BITS);
}

/* Whether the file still has our lines. */
RARE static int check_whole(struct map_file *file, int fd, const struct stat *status)
{
    if (status->st_nlink == 0 && file->has_links) {
        atomic_fetch_add(file->lost, atomic_exchange(&file->lines, 0));
        return pm_error_keep(file->first_error, -ENOENT,
                             "%s: somebody removed the file, and all lines with it", file->path);
    }
    bool known;
    uint64_t anchor = atomic_load(&file->anchor);
    if (anchor == 0 || anchor_at(fd, anchor >> DIGEST_BITS, &known) == anchor || !known ||
        !atomic_compare_exchange_strong(&file->anchor, &anchor, 0))
        return 0;
    uint64_t lines = atomic_exchange(&file->lines, 0);
    atomic_fetch_add(file->lost, lines);
    atomic_store(&file->others_append, false);
    pm_error_keep(file->first_error, -ESTALE,
                  "%s: somebody (another JIT in this process?) made the file empty or wrote over "
                  "it, and %ju line%s lost; lines go on",
                  file->path, (uintmax_t)lines, lines == 1 ? " is" : "s are");
    return 0;
}

/* For a write past RLIMIT_FSIZE the kernel sends SIGXFSZ, which ends a program that does not expect
 * it.  Queried each time, since the limit may change. */
static uint64_t room_below_limit(const struct stat *status)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    uint64_t size = (uint64_t)status->st_size;
    return limit.rlim_cur > size ? limit.rlim_cur - size : 0;
}

/* Write so close to the limit that other threads' writes at the same time may take us past it.
 * SIGXFSZ is sent to the writing thread.  It is removed before it is delivered. */
RARE static ssize_t write_near_limit(int fd, const char *bytes, size_t size)
{
    const struct timespec at_once = {0, 0};
    sigset_t signals, before, pending;
    sigemptyset(&signals);
    sigaddset(&signals, SIGXFSZ);
    sigemptyset(&pending);
    if (pthread_sigmask(SIG_BLOCK, &signals, &before) != 0) {
        errno = EFBIG;
        return -1;
    }
    sigpending(&pending);
    ssize_t written = write(fd, bytes, size);
    int error = errno;
    if (written < 0 && error == EFBIG && !sigismember(&pending, SIGXFSZ)) {
        int taken;
        while ((taken = sigtimedwait(&signals, NULL, &at_once)) < 0 && errno == EINTR)
            ;
        if (taken < 0 && errno != EAGAIN) /* a sandbox: it stays blocked for ever */
            sigaddset(&before, SIGXFSZ);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return written;
}

/* Whether the BYTES at LINE are the last of the file, which is SIZE bytes long: BYTES if so, else
 * 0; -1 if it can't be read. */
static ssize_t bytes_at_end(int fd, off_t size, const char *line, size_t bytes)
{
    char part[256];
    if (size < (off_t)bytes)
        return 0;
    for (size_t at = 0, next; at < bytes; at += next) {
        next = bytes - at < sizeof part ? bytes - at : sizeof part;
        ssize_t got = pread(fd, part, next, size - (off_t)(bytes - at));
        if (got != (ssize_t)next)
            return got < 0 ? -1 : 0;
        if (memcmp(part, line + at, next) != 0)
            return 0;
    }
    return (ssize_t)bytes;
}

/* Remove the BYTES of LINE that did fit, so that the next line is not appended to them; unless
 * someone has written after them.  If that is impossible, no further line is written. */
RARE static void take_back(struct map_file *file, int fd, const char *line, size_t bytes)
{
    struct stat status;
    ssize_t torn = fstat(fd, &status) != 0 ? -1 : bytes_at_end(fd, status.st_size, line, bytes);
    if (torn < 0 || (torn > 0 && ftruncate(fd, status.st_size - torn) != 0))
        atomic_store(&file->error,
                     pm_error_keep(file->first_error, -errno,
                                   "%s: cannot remove half a line at its end: %m", file->path));
}

static int write_error(struct map_file *file, int error)
{
    errno = error;
    if (error == ENOSPC || error == EDQUOT)
        return pm_error_keep(file->first_error, -error,
                             "%s: no room for a line: %m; free some space", file->path);
    if (error == EFBIG)
        return pm_error_keep(file->first_error, -error,
                             "%s: the file size limit is reached; raise it (ulimit -f)",
                             file->path);
    return pm_error_keep(file->first_error, -error, "%s: cannot write: %m", file->path);
}

/* A write that a signal has cut short (FUSE, NFS) is continued; if there was no room, the
 * continuation reports it. */
static int write_line(struct map_file *file, int fd, const char *line, size_t bytes, bool near)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t written = near ? write_near_limit(fd, line + done, bytes - done)
                               : write(fd, line + done, bytes - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            int error = written < 0 ? errno : EIO;
            if (done)
                take_back(file, fd, line, done);
            int kept = atomic_load(&file->error);
            return kept ? kept : write_error(file, error);
        }
        done += (size_t)written;
    }
    return 0;
}

/* Count LINE, which is in the file, and make it the anchor if there is none and it is still the
 * last line. */
RARE static void note_line(struct map_file *file, int fd, const char *line, size_t bytes)
{
    uint64_t none = 0;
    bool known;
    struct stat status;
    atomic_fetch_add(&file->lines, 1);
    if (atomic_load(&file->anchor) == 0 && fstat(fd, &status) == 0 &&
        bytes_at_end(fd, status.st_size, line, bytes) > 0)
        atomic_compare_exchange_strong(&file->anchor, &none,
                                       anchor_at(fd, (uint64_t)status.st_size, &known));
}

/* Whether another writer stopped in the middle of a line, as stdio does when its buffer is full.
 * Not checked if there is no other writer: another thread's line that crosses a page boundary is
 * visible in part for a moment. */
static bool ends_within_a_line(const struct map_file *file, int fd, uint64_t size)
{
    char last;
    return atomic_load(&file->has_others) && size > 0 && size != atomic_load(&file->end) &&
           pread(fd, &last, 1, (off_t)(size - 1)) == 1 && last != '\n';
}

int pm_file_append(struct map_file *file, const char *line, size_t bytes)
{
    struct stat status;
    if (!atomic_load(&file->is_open) && !wait_until_open(file))
        return pm_error_keep(file->first_error, -EAGAIN,
                             "%s: another thread is opening it, and does not come to an end",
                             file->path);
    int error = atomic_load(&file->error);
    if (error)
        return error;
    int fd = atomic_load(&file->fd);
    error = look_at(file, fd, &status);
    if (!error)
        error = check_whole(file, fd, &status);
    if (error)
        return error;
    if (!atomic_exchange(&file->others_append, true) && pm_let_others_append(fd))
        atomic_store(&file->has_others, true);
    if (ends_within_a_line(file, fd, (uint64_t)status.st_size)) {
        line--;
        bytes++;
    }
    uint64_t room = room_below_limit(&status);
    error = bytes > room ? write_error(file, EFBIG)
                         : write_line(file, fd, line, bytes, room < LIMIT_NEAR_BYTES);
    if (error)
        return error;
    atomic_store(&file->end, (uint64_t)status.st_size + bytes);
    note_line(file, fd, line, bytes);
    return 0;
}

/* ---- Closing ---- */

static int close_own(struct map_file *file, int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || status.st_dev != file->device || status.st_ino != file->inode)
        return 0;
    int error = check_whole(file, fd, &status);
    keep_closed(&status);
    return close(fd) != 0 ? -errno : error;
}

static void close_inherited(const struct map_file *file, int fd)
{
    struct stat status;
    if (fstat(fd, &status) == 0 && status.st_dev == file->device && status.st_ino == file->inode &&
        pm_has_own_descriptors(file->pid))
        close(fd);
}

int pm_file_close(struct map_file *file)
{
    int fd = atomic_exchange(&file->fd, -1);
    if (fd < 0)
        return 0;
    if (!pm_file_is_inherited(file))
        return close_own(file, fd);
    close_inherited(file, fd);
    return 0;
}
