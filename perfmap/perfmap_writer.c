/* The writer of /tmp/perf-<pid>.map.
 *
 *     7f00aa001000 40 fib            address and size in hex, then the name up to the line's end
 *     7f00aa001040 1c main loop
 *
 * A line reaches the file in one write(2) on a descriptor opened with O_APPEND, under a mutex, so
 * that perf never meets half of one, and nothing has to be flushed when the process dies.
 *
 * Each process writes to a struct map_file of its own.  A child finds by its pid that the handle's
 * file is its parent's, and puts one of its own in its place.  It never takes the parent's mutex,
 * which a thread that does not exist in the child may have held at the fork.
 *
 * What it does not do: share a file with another writer in the same process.
 */
#include "perfmap/perfmap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    NAME_MAX_BYTES = 4000, /* so that a line fits into a page */
    NUMBERS_MAX_BYTES = 2 * (16 + 1),
    ERROR_MAX_BYTES = 1024,
    PID_MAX_DIGITS = 20,
    OPTIONS_MAX_BYTES = 4096 /* of no version as large: a size above was never set */
};

/* A line ready to be written.  It has no NUL at its end. */
struct map_line {
    size_t size_bytes;
    char text[NUMBERS_MAX_BYTES + NAME_MAX_BYTES + 1];
};

/* The file of one process. */
struct map_file {
    struct map_file *parent; /* of the process that this one was forked from, or NULL */
    pid_t pid;
    pthread_mutex_t mutex; /* taken by the process PID only; guards what follows but fd */
    int error;             /* why nothing can be written any more, or 0 */
    dev_t device;
    ino_t inode;
    _Atomic int fd; /* -1 before the file is open; other threads look at it without the mutex */
    char path[];
};

struct perfmap {
    _Atomic(struct map_file *) file; /* NULL: perfmap_open failed */
    int open_error;                  /* why */
    _Atomic uint64_t lost;
    atomic_flag error_taken; /* somebody writes, or has written, the two below */
    _Atomic bool error_ready;
    int first_error;
    char error_text[ERROR_MAX_BYTES];
    char dir[];
};

/* ---- Errors ---- */

/* Keep the text, if it is the first one.  Returns ERROR, so that callers can return this call. */
__attribute__((format(printf, 3, 4))) static int keep_error(struct perfmap *map, int error,
                                                            const char *format, ...)
{
    if (atomic_flag_test_and_set(&map->error_taken))
        return error;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(map->error_text, sizeof map->error_text, format, arguments);
    va_end(arguments);
    map->first_error = error;
    atomic_store(&map->error_ready, true);
    return error;
}

const char *perfmap_error(const struct perfmap *map)
{
    return map && atomic_load(&map->error_ready) ? map->error_text : "";
}

uint64_t perfmap_lost(const struct perfmap *map)
{
    return map ? atomic_load(&map->lost) : 0;
}

/* ---- The line ---- */

/* Where to cut NAME so that no character is cut in two.  What is no UTF-8 is cut at the limit. */
static size_t name_length(const char *name)
{
    size_t length = strnlen(name, NAME_MAX_BYTES + 1);
    if (length <= NAME_MAX_BYTES)
        return length;
    for (size_t cut = NAME_MAX_BYTES; cut > NAME_MAX_BYTES - 4; cut--)
        if (((unsigned char)name[cut] & 0xc0) != 0x80)
            return cut;
    return NAME_MAX_BYTES;
}

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

static void line_format(struct map_line *line, uint64_t addr, uint64_t size_bytes, const char *name)
{
    /* A line without a name is malformed for every reader. */
    if (!name || !*name)
        name = "[unnamed]";
    int numbers =
        snprintf(line->text, sizeof line->text, "%" PRIx64 " %" PRIx64 " ", addr, size_bytes);
    char *to = line->text + numbers;
    size_t length = name_length(name);
    for (size_t i = 0; i < length; i++)
        to[i] = is_control(name[i]) ? ' ' : name[i];
    to[length] = '\n';
    line->size_bytes = (size_t)numbers + length + 1;
}

/* ---- The file ---- */

static struct map_file *file_new(const char *dir, struct map_file *parent)
{
    size_t path_bytes = strlen(dir) + sizeof "/perf-.map" + PID_MAX_DIGITS;
    struct map_file *file = calloc(1, sizeof *file + path_bytes);
    if (!file)
        return NULL;
    file->parent = parent;
    file->pid = getpid();
    pthread_mutex_init(&file->mutex, NULL);
    atomic_init(&file->fd, -1);
    snprintf(file->path, path_bytes, "%s/perf-%jd.map", dir, (intmax_t)file->pid);
    return file;
}

/* Whether FD is still the file: a program may have closed it behind our back (as daemons close all they
 * inherited), and the number stands for something else by now, that is none of our business. */
static bool is_held(const struct map_file *file, int fd)
{
    struct stat status;
    return fd >= 0 && fstat(fd, &status) == 0 && status.st_dev == file->device &&
           status.st_ino == file->inode;
}

static int file_close(struct map_file *file)
{
    int fd = atomic_exchange(&file->fd, -1);
    return !is_held(file, fd) || close(fd) == 0 ? 0 : -errno;
}

/* The mutex of another process's file may be locked for ever, and is left as it is. */
static void file_free(struct map_file *file)
{
    if (file->pid == getpid())
        pthread_mutex_destroy(&file->mutex);
    free(file);
}

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

/* Make way for the new file.  Only what an earlier process with our pid can have left is removed:
 * in a directory that all may write to, anything else may be a trap. */
static int remove_stale_file(struct perfmap *map, const char *path)
{
    struct stat status;
    if (lstat(path, &status) != 0) {
        if (errno == ENOENT)
            return 0;
        return keep_error(map, -errno, "%s: cannot look for an old file there: %m", path);
    }
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || status.st_nlink != 1)
        return keep_error(map, -EEXIST, "%s: %s is in the way, and is not touched; remove it", path,
                          what_is_in_the_way(&status));
    if (unlink(path) != 0 && errno != ENOENT)
        return keep_error(map, -errno, "%s: cannot remove the file of an earlier process: %m",
                          path);
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

static int file_open(struct perfmap *map, struct map_file *file)
{
    struct stat status;
    int error = remove_stale_file(map, file->path);
    if (error)
        return error;
    int fd = open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_APPEND,
                  S_IRUSR | S_IWUSR);
    if (fd < 0)
        return keep_error(map, -errno, "%s: cannot create: %m%s", file->path,
                          remedy_for_open(errno));
    fchmod(fd, S_IRUSR | S_IWUSR); /* best effort: a umask may have taken the owner's rights away */
    if (fstat(fd, &status) != 0) {
        error = keep_error(map, -errno, "%s: cannot look at the new file: %m", file->path);
        close(fd);
        return error;
    }
    file->device = status.st_dev;
    file->inode = status.st_ino;
    atomic_store(&file->fd, fd);
    return 0;
}

/* Whether a write of BYTES would pass RLIMIT_FSIZE, for which the kernel sends SIGXFSZ: a signal
 * that ends a program which never asked for it.  Looked up each time, since the limit may change.
 */
static bool passes_size_limit(int fd, size_t bytes)
{
    struct rlimit limit;
    struct stat status;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return false;
    if (fstat(fd, &status) != 0 || limit.rlim_cur < bytes)
        return true;
    return (rlim_t)status.st_size > limit.rlim_cur - bytes;
}

/* Take back the part of a line that did fit, lest the next line be glued to it.  If that is
 * impossible, no next line is written. */
static int remove_torn_line(struct perfmap *map, struct map_file *file, int fd, size_t torn_bytes)
{
    off_t end = lseek(fd, 0, SEEK_CUR);
    if (end < 0 || ftruncate(fd, end - (off_t)torn_bytes) != 0) {
        file->error =
            keep_error(map, -errno, "%s: cannot remove half a line at its end: %m", file->path);
        return file->error;
    }
    return keep_error(map, -ENOSPC, "%s: no room for a line; free some space", file->path);
}

static int file_append(struct perfmap *map, struct map_file *file, const struct map_line *line)
{
    int fd = atomic_load(&file->fd);
    if (!is_held(file, fd))
        return keep_error(
            map, -EBADF,
            "%s: the program closed the file's descriptor; it must keep those that it "
            "did not open",
            file->path);
    if (passes_size_limit(fd, line->size_bytes))
        return keep_error(map, -EFBIG, "%s: the file size limit is reached; raise it (ulimit -f)",
                          file->path);
    ssize_t written;
    do
        written = write(fd, line->text, line->size_bytes);
    while (written < 0 && errno == EINTR);
    if (written < 0)
        return keep_error(map, -errno, "%s: cannot write: %m", file->path);
    if ((size_t)written < line->size_bytes)
        return remove_torn_line(map, file, fd, (size_t)written);
    return 0;
}

/* ---- The handle ---- */

/* This process's file, not necessarily open yet, or NULL for want of memory.  The threads of a
 * child may arrive together: the first one's file stands. */
static struct map_file *own_file(struct perfmap *map)
{
    struct map_file *file = atomic_load(&map->file);
    if (file->pid == getpid())
        return file;
    struct map_file *fresh = file_new(map->dir, file);
    if (!fresh)
        return NULL;
    if (!atomic_compare_exchange_strong(&map->file, &file, fresh)) {
        file_free(fresh);
        return file;
    }
    file_close(fresh->parent);
    return fresh;
}

static int append_locked(struct perfmap *map, struct map_file *file, const struct map_line *line)
{
    if (!file->error && atomic_load(&file->fd) < 0)
        file->error = file_open(map, file);
    return file->error ? file->error : file_append(map, file, line);
}

static int append(struct perfmap *map, const struct map_line *line)
{
    struct map_file *file = own_file(map);
    if (!file)
        return keep_error(map, -ENOMEM, "no memory to open a perf map in a forked child");
    /* write(2) is a cancellation point: a thread cancelled there would take the mutex with it. */
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    pthread_mutex_lock(&file->mutex);
    int error = append_locked(map, file, line);
    pthread_mutex_unlock(&file->mutex);
    pthread_setcancelstate(cancel_state, &cancel_state);
    return error;
}

int perfmap_add_on(struct perfmap *map, uint64_t addr, uint64_t size_bytes, const char *name)
{
    struct map_line line;
    if (!map)
        return 0;
    int error = map->open_error;
    if (!error) {
        line_format(&line, addr, size_bytes, name);
        error = append(map, &line);
    }
    if (error)
        atomic_fetch_add(&map->lost, 1);
    return error;
}

const char *perfmap_path(const struct perfmap *map)
{
    const struct map_file *file = map ? atomic_load(&map->file) : NULL;
    return file && atomic_load(&file->fd) >= 0 ? file->path : "";
}

/* ---- Opening and closing ---- */

#define OPTION_GIVEN(options, member)                                                              \
    ((options)->size >= offsetof(struct perfmap_options, member) + sizeof((options)->member))

/* A caller built with a newer header may pass a longer struct.  What it sets there would be
 * ignored, so it must not set anything. */
static bool has_unknown_options(const struct perfmap_options *options)
{
    const unsigned char *bytes = (const unsigned char *)options;
    for (size_t i = offsetof(struct perfmap_options, reserved); i < options->size; i++)
        if (bytes[i])
            return true;
    return false;
}

/* Copy what GIVEN has of the members that this version knows. */
static int read_options(struct perfmap_options *options, const struct perfmap_options *given)
{
    *options = (struct perfmap_options)PERFMAP_OPTIONS_INIT;
    if (!given)
        return 0;
    if (!OPTION_GIVEN(given, size) || given->size > OPTIONS_MAX_BYTES)
        return -EINVAL;
    if (has_unknown_options(given))
        return -E2BIG;
    if (OPTION_GIVEN(given, dir))
        options->dir = given->dir;
    if (OPTION_GIVEN(given, flags))
        options->flags = given->flags;
    return options->flags & ~PERFMAP_ALWAYS ? -EINVAL : 0;
}

static bool environment_asks_for_map(void)
{
    const char *word = secure_getenv("PERFJIT");
    while (word) {
        size_t length = strcspn(word, ",");
        if (length == strlen("map") && memcmp(word, "map", length) == 0)
            return true;
        word = word[length] ? word + length + 1 : NULL;
    }
    return false;
}

static struct perfmap *map_new(const char *dir)
{
    struct perfmap *map = calloc(1, sizeof *map + strlen(dir) + 1);
    if (!map)
        return NULL;
    atomic_init(&map->file, NULL);
    atomic_init(&map->lost, 0);
    atomic_init(&map->error_ready, false);
    atomic_flag_clear(&map->error_taken);
    memcpy(map->dir, dir, strlen(dir) + 1);
    return map;
}

static int open_first_file(struct perfmap *map)
{
    struct map_file *file = file_new(map->dir, NULL);
    if (!file)
        return keep_error(map, -ENOMEM, "no memory to open a perf map");
    int error = file_open(map, file);
    if (error)
        file_free(file);
    else
        atomic_store(&map->file, file);
    return error;
}

int perfmap_open(struct perfmap **map, const struct perfmap_options *given)
{
    struct perfmap_options options;
    *map = NULL;
    int error = read_options(&options, given);
    if (!error && !(options.flags & PERFMAP_ALWAYS) && !environment_asks_for_map())
        return 0;
    *map = map_new(options.dir && *options.dir ? options.dir : "/tmp");
    if (!*map)
        return -ENOMEM;
    if (error)
        keep_error(*map, error, "struct perfmap_options: %s",
                   error == -E2BIG
                       ? "options that this version of libperfmap does not know are set"
                       : "size is not set (PERFMAP_OPTIONS_INIT), or an unknown flag is");
    else
        error = open_first_file(*map);
    (*map)->open_error = error;
    return error;
}

int perfmap_close(struct perfmap *map)
{
    if (!map)
        return 0;
    int error = atomic_load(&map->error_ready) ? map->first_error : 0;
    struct map_file *file = atomic_load(&map->file);
    while (file) {
        struct map_file *parent = file->parent;
        int close_error = file_close(file);
        error = error ? error : close_error;
        file_free(file);
        file = parent;
    }
    free(map);
    return error;
}
