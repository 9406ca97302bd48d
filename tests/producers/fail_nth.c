/* fail_nth: makes the N-th call of some functions of libc fail.  Built as a shared object, for LD_PRELOAD.
 *
 *     FAIL_CALLS=malloc,open,...   which count: names of the list below, or all
 *     FAIL_NTH=N                   from 1; 0 or not set: none fails
 *     FAIL_ERRNO=NUMBER            what it fails with; if not set ENOMEM for memory, else EIO
 *     FAIL_REST=1                  all that follow fail as well
 *     FAIL_COUNT=FILE              at exit, write there how many there were
 *
 * Only calls through the dynamic symbol table are seen: those of the program and its libraries, not libc's own.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

/* The functions replace libc's, whose headers declare what they replace. */
API void *malloc(size_t bytes);
API void *calloc(size_t count, size_t bytes);
API void *realloc(void *old, size_t bytes);

static atomic_long calls, fail_at;
static const char *which = "";
static int given_errno;
static bool rest;
static bool ready;

static bool is_listed(const char *name)
{
    size_t length = strlen(name);
    for (const char *word = which; word; word = strchr(word, ',') ? strchr(word, ',') + 1 : NULL)
        if (strncmp(word, name, length) == 0 && (word[length] == ',' || !word[length]))
            return true;
    return strcmp(which, "all") == 0;
}

/* Whether the call of NAME that is just made is to fail, with errno. */
static bool fails(const char *name, int error)
{
    if (!ready || !is_listed(name))
        return false;
    long call = atomic_fetch_add(&calls, 1) + 1, at = atomic_load(&fail_at);
    if (at == 0 || (rest ? call < at : call != at))
        return false;
    errno = given_errno ? given_errno : error;
    return true;
}

__attribute__((constructor)) static void begin(void)
{
    const char *calls_text = getenv("FAIL_CALLS"), *nth = getenv("FAIL_NTH");
    const char *error = getenv("FAIL_ERRNO");
    which = calls_text ? calls_text : "";
    given_errno = error ? atoi(error) : 0;
    rest = getenv("FAIL_REST") != NULL;
    atomic_store(&fail_at, nth ? atol(nth) : 0);
    ready = true;
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("FAIL_COUNT");
    char text[32];
    ready = false;
    if (!path)
        return;
    int length = snprintf(text, sizeof text, "%ld\n", atomic_load(&calls));
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || syscall(SYS_write, fd, text, (size_t)length) != length)
        _exit(99);
    syscall(SYS_close, fd);
}

/* The next definition of NAME, as a pointer to a function of the type of this one. */
#define NEXT(name) ((__typeof__(&name))(uintptr_t)next(#name))

static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    return found;
}

/* A function NAME of type RESULT that passes ARGUMENTS on. */
#define WRAP(result, failed, error, name, parameters, arguments)                                   \
    API result name parameters;                                                                    \
    result name parameters                                                                         \
    {                                                                                              \
        static __typeof__(&name) real;                                                             \
        if (!real)                                                                                 \
            real = NEXT(name);                                                                     \
        return fails(#name, error) ? (result)(failed) : real arguments;                            \
    }

/* clang-format off */
WRAP(void *, NULL, ENOMEM, malloc, (size_t bytes), (bytes))
WRAP(void *, NULL, ENOMEM, realloc, (void *old, size_t bytes), (old, bytes))
WRAP(int, -1, EIO, mkstemp, (char *path), (path))
WRAP(int, -1, EIO, mkostemp, (char *path, int flags), (path, flags))
WRAP(char *, NULL, EIO, mkdtemp, (char *path), (path))
WRAP(int, -1, EIO, ftruncate, (int fd, off_t bytes), (fd, bytes))
WRAP(int, -1, ENOSPC, fallocate, (int fd, int mode, off_t from, off_t bytes), (fd, mode, from, bytes))
WRAP(ssize_t, -1, ENOSPC, write, (int fd, const void *bytes, size_t count), (fd, bytes, count))
WRAP(ssize_t, -1, ENOSPC, pwrite, (int fd, const void *bytes, size_t count, off_t at), (fd, bytes, count, at))
WRAP(ssize_t, -1, ENOSPC, pwrite64, (int fd, const void *bytes, size_t count, off_t at), (fd, bytes, count, at))
WRAP(ssize_t, -1, ENOSPC, pwritev, (int fd, const struct iovec *pieces, int count, off_t at), (fd, pieces, count, at))
WRAP(ssize_t, -1, EIO, read, (int fd, void *bytes, size_t count), (fd, bytes, count))
WRAP(ssize_t, -1, EIO, pread, (int fd, void *bytes, size_t count, off_t at), (fd, bytes, count, at))
WRAP(int, -1, EIO, rename, (const char *from, const char *to), (from, to))
WRAP(int, -1, EIO, renameat, (int fd, const char *from, int to_fd, const char *to), (fd, from, to_fd, to))
WRAP(int, -1, EIO, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(int, -1, EIO, fstat, (int fd, struct stat *status), (fd, status))
WRAP(int, -1, EIO, stat, (const char *path, struct stat *status), (path, status))
WRAP(int, -1, EIO, lstat, (const char *path, struct stat *status), (path, status))
WRAP(int, -1, ENOMEM, madvise, (void *start, size_t bytes, int advice), (start, bytes, advice))
WRAP(char *, NULL, EIO, realpath, (const char *path, char *to), (path, to))
WRAP(char *, NULL, EIO, getcwd, (char *to, size_t bytes), (to, bytes))
WRAP(DIR *, NULL, EIO, opendir, (const char *path), (path))
WRAP(DIR *, NULL, EIO, fdopendir, (int fd), (fd))
WRAP(FILE *, NULL, EIO, fopen, (const char *path, const char *mode), (path, mode))
WRAP(int, -1, EIO, memfd_create, (const char *name, unsigned flags), (name, flags))
/* clang-format on */

API void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return fails("mmap", ENOMEM)
               ? MAP_FAILED
               : (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

/* dlsym itself calls it. */
API void *calloc(size_t count, size_t bytes)
{
    static char early[4096];
    static size_t used;
    static bool searching;
    static void *(*real)(size_t, size_t);
    if (!real && searching) {
        void *room = early + used;
        used += (count * bytes + 15) / 16 * 16;
        return used <= sizeof early ? room : NULL;
    }
    if (!real) {
        searching = true;
        real = NEXT(calloc);
        searching = false;
    }
    return fails("calloc", ENOMEM) ? NULL : real(count, bytes);
}

API void *mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...)
{
    return fails("mremap", ENOMEM) ? MAP_FAILED
                                   : (void *)syscall(SYS_mremap, old, old_bytes, bytes, flags, 0);
}

static mode_t mode_in(va_list arguments, int flags)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

API int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_in(arguments, flags);
    va_end(arguments);
    return fails("open", EMFILE) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

API int openat(int dir_fd, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_in(arguments, flags);
    va_end(arguments);
    return fails("openat", EMFILE) ? -1 : (int)syscall(SYS_openat, dir_fd, path, flags, mode);
}
