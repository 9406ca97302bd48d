/* See dump_place.h. */
#include "jitdump/disk/dump_place.h"
#include "jitdump/format/dump_clock.h"
#include "jitdump/format/jitdump_format.h"
#include "jitdump/guest/process_start.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- Whether it must be kept ---- */

/* A dump is locked as long as its process has it open. */
static bool is_locked(int fd)
{
    if (flock(fd, LOCK_SH | LOCK_NB) != 0) /* as perfjit asks */
        return errno == EWOULDBLOCK;
    flock(fd, LOCK_UN);
    return false;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* A line of /proc/self/maps: addresses, permissions, offset, device, inode, path.  The device may
 * not be the file's (btrfs). */
static bool line_is_of(char *line, const char *name, uint64_t inode)
{
    uint64_t lines_inode;
    line[strcspn(line, "\n")] = '\0';
    return ends_with(line, name) && sscanf(line, "%*s %*s %*s %*s %" SCNu64, &lines_inode) == 1 &&
           lines_inode == inode;
}

/* Whether this process has mapped it, as every JIT does for perf; true if that can't be determined.
 */
static bool is_mapped(const char *path, uint64_t inode)
{
    char *line = NULL;
    size_t line_bytes = 0;
    bool mapped = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return true;
    while (!mapped && getline(&line, &line_bytes, maps) > 0)
        mapped = line_is_of(line, strrchr(path, '/'), inode);
    free(line);
    fclose(maps);
    return mapped;
}

static bool was_changed_since(const struct stat *status, uint64_t start)
{
    struct timespec today;
    clock_gettime(CLOCK_REALTIME, &today);
    return today.tv_sec - status->st_mtime <=
           (time_t)((jd_clock_now(false) - start) / 1000000000 + 1);
}

/* For how long the machine was suspended: CLOCK_MONOTONIC stops then, CLOCK_BOOTTIME does not.  On
 * a busy machine this thread may wait for a processor between the two, but hardly each time. */
static bool machine_slept(uint64_t *asleep_ns)
{
    enum { TRIES = 4 };
    *asleep_ns = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        const uint64_t awake_ns = jd_clock_now(false);
        struct timespec now; /* read second, so that the difference is not negative */
        if (clock_gettime(CLOCK_BOOTTIME, &now) != 0)
            return false;
        const uint64_t ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - awake_ns;
        *asleep_ns = ns < *asleep_ns ? ns : *asleep_ns;
    }
    return true;
}

/* When this process started, by CLOCK_MONOTONIC, up to a tick too early. */
static bool own_start(uint64_t *monotonic_ns)
{
    uint64_t start_ns, asleep_ns;
    if (!process_start(&start_ns) || !machine_slept(&asleep_ns))
        return false;
    *monotonic_ns = start_ns > asleep_ns ? start_ns - asleep_ns : 0;
    return true;
}

/* Whether it is a dump that was begun after this process started.  The header of an empty file may
 * still be in a buffer.  A file of zeros may be one that another thread is just opening: its header
 * comes late, and its time after that.  A closed one without records need not be kept. */
static bool is_of_this_life(int fd, const struct stat *status)
{
    enum { TIME = JITHEADER_TIMESTAMP / 8, FLAGS = TIME + 1 };
    uint64_t header[JITHEADER_BYTES / 8], start;
    if (status->st_size == JITHEADER_BYTES + JR_CODE_CLOSE_BYTES)
        return false;
    ssize_t bytes = pread(fd, header, sizeof header, 0);
    bool has_header = bytes == sizeof header && header[0] != 0;
    if ((bytes > 0 && bytes != sizeof header) ||
        (has_header && (uint32_t)header[0] != JITDUMP_MAGIC))
        return false; /* not a dump */
    if (!own_start(&start))
        return true;
    bool has_time = has_header && header[TIME] && !(header[FLAGS] & JITDUMP_FLAG_ARCH_TIMESTAMP);
    if (!has_time)
        return was_changed_since(status, start);
    return header[TIME] >= start && header[TIME] <= jd_clock_now(false);
}

bool jd_place_is_taken(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool taken = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                 (is_locked(fd) || is_of_this_life(fd, &status) || is_mapped(path, status.st_ino));
    close(fd);
    return taken;
}

/* ---- What is in the way ---- */

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

/* Returns 0 if the place is free now, 1 if the existing file must be kept, or a negative errno. */
static int clear(const char *path, struct first_error *error)
{
    struct stat status;
    if (lstat(path, &status) != 0) {
        if (errno == ENOENT)
            return 0; /* the directory's absence is found when creating */
        return jd_error_keep(error, -errno,
                             "%s: cannot look for an old file there: %m; set "
                             "JITDUMPDIR to a directory of yours",
                             path);
    }
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || status.st_nlink != 1)
        return jd_error_keep(error, -EEXIST,
                             "%s: %s is in the way, and is not touched; remove it, "
                             "or set JITDUMPDIR to another directory",
                             path, what_is_in_the_way(&status));
    if (jd_place_is_taken(path))
        return 1;
    if (unlink(path) != 0 && errno != ENOENT)
        return jd_error_keep(error, -errno, "%s: cannot remove the file of an earlier process: %m",
                             path);
    return 0;
}

/* ---- Places ---- */

const char *jd_place_remedy(int error)
{
    switch (error) {
    case EEXIST:
        return "; somebody put it there this moment: find out who";
    case ENOENT:
        return "; the directory does not exist, or nothing can be made in it: create it, or set "
               "JITDUMPDIR to another";
    case EACCES:
    case EROFS:
        return "; set JITDUMPDIR to a directory that you may write to";
    case EMFILE:
    case ENFILE:
        return "; raise the limit (ulimit -n)";
    case ENOSPC:
    case EDQUOT:
        return "; free some space, or set JITDUMPDIR to a directory on another file system";
    default:
        return "; set JITDUMPDIR to another directory";
    }
}

static void folder_path(const struct dump_place *place, char *path, size_t path_bytes)
{
    char number[16] = "";
    if (place->number > 1)
        snprintf(number, sizeof number, "-%u", place->number);
    snprintf(path, path_bytes, "%s/jitdump-%jd%s", place->dir, (intmax_t)place->pid, number);
}

static void stage_folder_path(const struct dump_place *place, char *path, size_t path_bytes)
{
    folder_path(place, path, path_bytes);
    size_t length = strlen(path);
    snprintf(path + length, path_bytes - length, "/stage");
}

static void append_name(const struct dump_place *place, char *path, size_t path_bytes)
{
    size_t length = strlen(path);
    snprintf(path + length, path_bytes - length, "/jit-%jd.dump", (intmax_t)place->pid);
}

void jd_place_paths(const struct dump_place *place, const struct dump_paths *paths)
{
    folder_path(place, paths->body, paths->bytes);
    append_name(place, paths->body, paths->bytes);
    stage_folder_path(place, paths->stage, paths->bytes);
    append_name(place, paths->stage, paths->bytes);
}

/* Create the directory PATH if necessary, and set *MADE if it was.  Returns 0 if it is ours; 1 if
 * it is somebody else's, or others may write to it; or a negative errno. */
static int make_folder(const char *path, bool *made, struct first_error *error)
{
    struct stat status;
    *made = mkdir(path, S_IRWXU) == 0;
    if (*made)
        chmod(path, S_IRWXU); /* best effort: a umask may have taken the owner's rights away */
    else if (errno != EEXIST)
        return jd_error_keep(error, -errno, "%s: cannot create the directory: %m%s", path,
                             jd_place_remedy(errno));
    bool own = lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
               !(status.st_mode & (S_IWGRP | S_IWOTH));
    return own ? 0 : 1;
}

/* As jd_place_find, for PLACE only; 1: the dump can't go there. */
static int prepare(struct dump_place *place, const struct dump_paths *paths,
                   struct first_error *error)
{
    place->made_stage_folder = false;
    folder_path(place, paths->body, paths->bytes);
    int result = make_folder(paths->body, &place->made_folder, error);
    stage_folder_path(place, paths->stage, paths->bytes);
    if (!result)
        result = make_folder(paths->stage, &place->made_stage_folder, error);
    jd_place_paths(place, paths);
    if (!result)
        result = clear(paths->body, error);
    return result ? result : clear(paths->stage, error);
}

/* ---- All places are taken ---- */

/* When this program first looked for a place, as files have their times. */
static time_t looks_since(void)
{
    static _Atomic int64_t since;
    int64_t unknown = 0;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    atomic_compare_exchange_strong(&since, &unknown, (int64_t)now.tv_sec);
    return (time_t)(unknown ? unknown : now.tv_sec);
}

/* Whether an earlier program wrote the file of PATH, at *WRITTEN, and nobody writes it now. */
static bool is_earlier(const char *path, struct timespec *written)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool earlier = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                   status.st_uid == geteuid() && status.st_nlink == 1 &&
                   status.st_mtim.tv_sec < looks_since() && !is_locked(fd);
    *written = status.st_mtim;
    close(fd);
    return earlier;
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* Without /proc any dump may be of this process's life, and all are kept.  Pid 1 of a container has
 * the same pid each time it is started: when there are as many as there can be, the oldest gives
 * way.  Returns as prepare. */
static int replace_oldest(struct dump_place *place, const struct dump_paths *paths,
                          struct first_error *error)
{
    struct timespec written, oldest = {0};
    unsigned number = 0;
    uint64_t start;
    if (own_start(&start))
        return 1;
    for (place->number = 1; place->number <= PLACES_MAX; place->number++) {
        jd_place_paths(place, paths);
        if (is_earlier(paths->body, &written) && (!number || is_before(&written, &oldest))) {
            oldest = written;
            number = place->number;
        }
    }
    if (!number)
        return 1;
    place->number = number;
    jd_place_paths(place, paths);
    unlink(paths->body);
    if (is_earlier(paths->stage, &written))
        unlink(paths->stage);
    return prepare(place, paths, error);
}

int jd_place_find(struct dump_place *place, const struct dump_paths *paths,
                  struct first_error *error)
{
    looks_since();
    int result = 1;
    for (; place->number <= PLACES_MAX; place->number++) {
        result = prepare(place, paths, error);
        if (result <= 0)
            return result;
    }
    result = replace_oldest(place, paths, error);
    if (result <= 0)
        return result;
    return jd_error_keep(error, -EEXIST,
                         "%s: there are as many dumps of this process as there can be; set "
                         "JITDUMPDIR to another directory",
                         paths->body);
}

/* Remove the directory that PATH_OF tells, if *MADE. */
static void leave(const struct dump_place *place, const struct dump_paths *paths, bool *made,
                  void (*path_of)(const struct dump_place *, char *, size_t))
{
    if (!*made)
        return;
    path_of(place, paths->stage, paths->bytes);
    rmdir(paths->stage);
    *made = false;
    jd_place_paths(place, paths);
}

void jd_place_leave_stage(struct dump_place *place, const struct dump_paths *paths)
{
    leave(place, paths, &place->made_stage_folder, stage_folder_path);
}

void jd_place_leave(struct dump_place *place, const struct dump_paths *paths)
{
    jd_place_leave_stage(place, paths);
    leave(place, paths, &place->made_folder, folder_path);
}
