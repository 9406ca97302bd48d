/* Spans of the program's own time: the calls of jitdump.h.  A line of a span is one write(2) to a
 * file that is only appended to, so threads, signal handlers and kills leave whole lines. */
#include "jitdump/guest/environment_word.h"
#include "jitdump/guest/held_fd.h"
#include "jitdump/guest/write_signals.h"
#include "jitdump/jitdump.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { FILE_MODE = 0600, NUMBER_BYTES = 20, NAME_BYTES = 255, MAPPED_BYTES = 4096 };
enum { LINE_BYTES = 2 * (NUMBER_BYTES + 1) + NAME_BYTES + 1 };

struct jitdump_spans {
    struct held_fd file;
    pid_t pid;
    void *mapping;
};

/* ---- The file ---- */

/* To be freed; NULL: there is no memory.  A path would take more of the stack than a call may. */
static char *name_file(const char *dir, uint32_t flags)
{
    char *path;
    if (!dir)
        dir = secure_getenv("JITDUMPDIR");
    if (!dir || !*dir)
        dir = ".";
    const int bytes =
        flags & JITDUMP_SPANS_OF_THREAD
            ? asprintf(&path, "%s/marker-%d-%ld.txt", dir, getpid(), syscall(SYS_gettid))
            : asprintf(&path, "%s/marker-%d.txt", dir, getpid());
    return bytes < 0 ? NULL : path;
}

static bool is_own_file(const struct stat *status)
{
    return S_ISREG(status->st_mode) && status->st_uid == geteuid() && status->st_nlink == 1;
}

/* An earlier file of this process is gone on with; anything else of that name may be a trap. Links,
 * directories, sockets and others' files have errors of their own, and are told as one. */
static int open_file(const char *path)
{
    struct stat status;
    int fd = jd_fd_above_standard_streams(
        open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, FILE_MODE));
    if (fd < 0) {
        const int error = -errno;
        return lstat(path, &status) == 0 && !is_own_file(&status) ? -EEXIST : error;
    }
    if (fstat(fd, &status) == 0 && is_own_file(&status)) {
        if ((status.st_mode & FILE_MODE) != FILE_MODE) /* a umask has taken the owner's rights */
            fchmod(fd, FILE_MODE);
        return fd;
    }
    syscall(SYS_close, fd);
    return -EEXIST;
}

/* perf finds the file by this mapping; nobody reads it. */
static int map_file(struct jitdump_spans *spans, int fd)
{
    if (!jd_fd_hold(&spans->file, fd)) {
        const int error = -errno;
        syscall(SYS_close, fd);
        return error;
    }
    spans->mapping = mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    if (spans->mapping != MAP_FAILED)
        return 0;
    const int error = -errno;
    jd_fd_close(&spans->file);
    return error;
}

static int open_spans(struct jitdump_spans **spans, const char *dir, uint32_t flags)
{
    char *path = name_file(dir, flags);
    const int fd = path ? open_file(path) : -ENOMEM;
    free(path);
    if (fd < 0)
        return fd;
    struct jitdump_spans *made = malloc(sizeof *made);
    if (!made) {
        syscall(SYS_close, fd);
        return -ENOMEM;
    }
    made->pid = getpid();
    const int error = map_file(made, fd);
    if (error)
        free(made);
    else
        *spans = made;
    return error;
}

int jitdump_spans_open(struct jitdump_spans **spans, const char *dir, uint32_t flags)
{
    const int before = errno;
    int result = 0, cancelling;
    *spans = NULL;
    if (flags & ~(JITDUMP_ALWAYS | JITDUMP_SPANS_OF_THREAD))
        return -EINVAL;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling); /* open would be cancelled */
    if (flags & JITDUMP_ALWAYS || environment_has("dump"))
        result = open_spans(spans, dir, flags);
    pthread_setcancelstate(cancelling, &cancelling);
    errno = before;
    return result;
}

void jitdump_spans_close(struct jitdump_spans *spans)
{
    const int before = errno;
    if (!spans)
        return;
    if (spans->pid == getpid())
        jd_fd_close(&spans->file);
    else
        jd_fd_close_inherited(&spans->file, spans->pid);
    munmap(spans->mapping, MAPPED_BYTES);
    free(spans);
    errno = before;
}

/* ---- Spans ---- */

uint64_t jitdump_span_begin(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now); /* does not fail, and leaves errno alone */
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* snprintf is not for signal handlers. */
static char *put_number(char *to, uint64_t value)
{
    char digits[NUMBER_BYTES], *digit = digits + NUMBER_BYTES;
    do
        *--digit = (char)('0' + value % 10);
    while (value /= 10);
    while (digit < digits + NUMBER_BYTES)
        *to++ = *digit++;
    *to++ = ' ';
    return to;
}

/* The size of the control character at TEXT, which a NUL ends; 0: it is none.  Terminals obey
 * U+0080 to U+009F, too. */
static size_t control_bytes(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f)
        return 2;
    return at[0] < ' ' || at[0] == 0x7f;
}

/* NAME on one line, cut between characters. */
static char *put_name(char *to, const char *name)
{
    size_t bytes = strnlen(name, NAME_BYTES + 1);
    if (bytes > NAME_BYTES)
        for (bytes = NAME_BYTES; bytes && ((unsigned char)name[bytes] & 0xc0) == 0x80;)
            bytes--;
    for (size_t i = 0; i < bytes;) {
        const size_t control = control_bytes(name + i);
        *to++ = control ? ' ' : name[i];
        i += control ? control : 1;
    }
    *to++ = '\n';
    return to;
}

/* Remove the BYTES of LINE that there was room for, unless somebody has written behind them: the
 * next line would be appended to them. */
static void take_line_back(int fd, const char *line, size_t bytes)
{
    char there[LINE_BYTES];
    struct stat status;
    int cancelling;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
    if (fstat(fd, &status) == 0 && status.st_size >= (off_t)bytes &&
        pread(fd, there, bytes, status.st_size - (off_t)bytes) == (ssize_t)bytes &&
        memcmp(there, line, bytes) == 0)
        (void)!ftruncate(fd, status.st_size - (off_t)bytes);
    pthread_setcancelstate(cancelling, &cancelling);
}

static int write_line(const struct jitdump_spans *spans, const char *line, size_t bytes)
{
    struct write_signals signals;
    int error = jd_write_signals_block(&signals);
    if (error)
        return error;
    size_t done = 0;
    while (done < bytes && !error) {
        const long written = syscall(SYS_write, spans->file.number, line + done, bytes - done);
        if (written > 0)
            done += (size_t)written;
        else if (written == 0 || errno != EINTR)
            error = written < 0 ? -errno : -EIO;
    }
    if (error && done)
        take_line_back(spans->file.number, line, done);
    jd_write_signals_restore(&signals, error);
    return error;
}

int jitdump_span_end_on(struct jitdump_spans *spans, uint64_t begin_ns, const char *name)
{
    const int before = errno;
    const uint64_t end_ns = jitdump_span_begin();
    char line[LINE_BYTES];
    int result;
    if (!spans)
        return 0;
    if (!name || !*name || begin_ns > end_ns)
        result = -EINVAL;
    else if (spans->pid != getpid())
        result = -ECHILD;
    else if (!jd_fd_is_ours(&spans->file))
        result = -EBADF;
    else
        result = write_line(
            spans, line,
            (size_t)(put_name(put_number(put_number(line, begin_ns), end_ns), name) - line));
    errno = before;
    return result;
}
