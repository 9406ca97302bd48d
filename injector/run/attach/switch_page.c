/* See switch_page.h. */
#include "injector/run/attach/switch_page.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WANTED_SEALS = F_SEAL_SHRINK | F_SEAL_GROW };

#define AT(member) offsetof(struct attach_page, member)

/* ---- Bytes ---- */

static int read_at(const struct switch_page *page, size_t at, void *bytes, size_t count)
{
    ssize_t got = pread(page->fd, bytes, count, (off_t)(page->base + at));
    if (got == (ssize_t)count)
        return 0;
    errno = got < 0 ? errno : ESRCH;
    return -1;
}

static int write_at(const struct switch_page *page, size_t at, const void *bytes, size_t count)
{
    ssize_t put = pwrite(page->fd, bytes, count, (off_t)(page->base + at));
    if (put == (ssize_t)count)
        return 0;
    errno = put < 0 ? errno : ESRCH;
    return -1;
}

static int write_u32(const struct switch_page *page, size_t at, uint32_t value)
{
    return write_at(page, at, &value, sizeof value);
}

/* ---- Ways to it ---- */

static bool is_the_file(const struct switch_page *page, int fd)
{
    struct stat status;
    int seals = -1;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 0 &&
        status.st_ino == page->inode && status.st_size >= ATTACH_PAGE_BYTES)
        seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & WANTED_SEALS) == WANTED_SEALS;
}

/* Open the file at PATH, which may be anything: look at it before it is really opened. */
static int open_file(const struct switch_page *page, int dir, const char *path)
{
    struct stat status;
    char again[32];
    int fd = -1, look = openat(dir, path, O_PATH | O_CLOEXEC);
    if (look < 0)
        return -1;
    snprintf(again, sizeof again, "/proc/self/fd/%d", look);
    if (fstat(look, &status) == 0 && S_ISREG(status.st_mode) && status.st_ino == page->inode)
        fd = open(again, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    else
        errno = EPROTO;
    int error = errno;
    close(look);
    if (fd >= 0 && !is_the_file(page, fd)) {
        close(fd);
        fd = -1;
        error = EPROTO;
    }
    errno = error;
    return fd;
}

/* Among the descriptors of the process. */
static int open_by_descriptor(const struct switch_page *page)
{
    char path[64], target[64];
    int fd = -1;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)page->process);
    DIR *dir = opendir(path);
    if (!dir)
        return -1;
    errno = ENOENT;
    for (const struct dirent *entry; fd < 0 && (entry = readdir(dir));) {
        ssize_t length = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        if (strstr(target, "memfd:" ATTACH_PAGE_NAME))
            fd = open_file(page, dirfd(dir), entry->d_name);
    }
    int error = errno;
    closedir(dir);
    errno = error;
    return fd;
}

static int open_memory(struct switch_page *page)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", (int)page->process);
    page->base = page->start;
    return open(path, O_RDWR | O_CLOEXEC);
}

static int check(struct switch_page *page)
{
    struct {
        char magic[ATTACH_MAGIC_BYTES];
        uint32_t version, pid;
    } head;
    if (read_at(page, 0, &head, sizeof head))
        return -1;
    if (memcmp(head.magic, ATTACH_PAGE_MAGIC, sizeof head.magic) != 0 ||
        head.version != ATTACH_PAGE_VERSION) {
        errno = EPROTO;
        return -1;
    }
    page->owner = head.pid;
    return 0;
}

int switch_page_open(struct switch_page *page)
{
    page->fd = -1;
    page->base = 0;
    if (page->has_file)
        page->fd = open_by_descriptor(page);
    if (page->fd < 0)
        page->fd = open_memory(page);
    if (page->fd < 0)
        return -1;
    if (check(page) == 0)
        return 0;
    int error = errno;
    switch_page_close(page);
    errno = error;
    return -1;
}

void switch_page_close(struct switch_page *page)
{
    if (page->fd >= 0)
        close(page->fd);
    page->fd = -1;
}

bool switch_page_lock(const struct switch_page *page)
{
    return page->base != 0 || flock(page->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

void switch_page_unlock(const struct switch_page *page)
{
    if (page->base == 0)
        flock(page->fd, LOCK_UN);
}

static struct flock lock_of(const struct switch_page *page, enum switch_use use, short type)
{
    return (struct flock){.l_type = type,
                          .l_whence = SEEK_SET,
                          .l_start = (off_t)(page->base + (uint64_t)use),
                          .l_len = 1};
}

static bool set_lock(const struct switch_page *page, enum switch_use use, short type)
{
    struct flock lock = lock_of(page, use, type);
    return fcntl(page->fd, F_OFD_SETLK, &lock) == 0;
}

bool switch_page_use(const struct switch_page *page, enum switch_use use)
{
    return set_lock(page, use, F_RDLCK);
}

void switch_page_leave(const struct switch_page *page, enum switch_use use)
{
    set_lock(page, use, F_UNLCK);
}

bool switch_page_is_used(const struct switch_page *page, enum switch_use use)
{
    struct flock lock = lock_of(page, use, F_WRLCK);
    return fcntl(page->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool switch_page_is_last(const struct switch_page *page, enum switch_use use)
{
    return set_lock(page, use, F_WRLCK);
}

/* ---- What is said ---- */

int switch_page_ask(const struct switch_page *page, enum attach_wanted wanted, const char *dir,
                    uint32_t *request)
{
    char text[ATTACH_PATH_BYTES] = "";
    const uint32_t number_and_wanted[] = {0, wanted};
    if (dir && strlen(dir) >= sizeof text) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (dir)
        strcpy(text, dir);
    if (read_at(page, AT(request), request, sizeof *request))
        return -1;
    ++*request;
    if (write_at(page, AT(dir), text, sizeof text) ||
        write_u32(page, AT(wanted), number_and_wanted[1]) ||
        write_u32(page, AT(request), *request) || write_u32(page, AT(word), ATTACH_ASK))
        return -1;
    if (switch_page_prove(page, *request) == 0)
        return 0;
    int error = errno;
    switch_page_withdraw(page);
    errno = error;
    return -1;
}

int switch_page_prove(const struct switch_page *page, uint32_t request)
{
    const struct timespec times[] = {{0, UTIME_OMIT}, {(time_t)request, ATTACH_PROOF_NS}};
    return page->base ? 0 : futimens(page->fd, times);
}

void switch_page_wake(const struct switch_page *page)
{
    uint32_t word = ATTACH_QUIET, seen = ATTACH_QUIET;
    struct switch_page memory = *page;
    memory.fd = page->base ? -1 : open_memory(&memory);
    if (memory.fd < 0)
        return;
    /* In this order: without a copy the two are the same, and only an asker sets it. */
    if (read_at(&memory, AT(word), &seen, sizeof seen) == 0 && seen == ATTACH_QUIET &&
        read_at(page, AT(word), &word, sizeof word) == 0 && word != ATTACH_QUIET)
        write_u32(&memory, AT(word), word);
    switch_page_close(&memory);
}

bool switch_page_is_taken(const struct switch_page *page)
{
    uint32_t word = ATTACH_ASK;
    return read_at(page, AT(word), &word, sizeof word) == 0 && word == ATTACH_QUIET;
}

/* In its memory the process has to see that there is something, to drop its copy of the page. */
void switch_page_withdraw(const struct switch_page *page)
{
    write_u32(page, AT(wanted), ATTACH_NOTHING);
    if (!page->base)
        write_u32(page, AT(word), ATTACH_QUIET);
}

int switch_page_split(const struct switch_page *page, bool on)
{
    uint32_t word = ATTACH_QUIET;
    if (on)
        return write_u32(page, AT(word), ATTACH_SPLIT);
    if (read_at(page, AT(word), &word, sizeof word))
        return -1;
    return word == ATTACH_SPLIT ? write_u32(page, AT(word), ATTACH_QUIET) : 0;
}

int switch_page_read(const struct switch_page *page, struct switch_answer *answer)
{
    static struct attach_page copy; /* the process's half of it */
    size_t from = AT(answer);
    if (read_at(page, from, (char *)&copy + from, sizeof copy - from))
        return -1;
    *answer = (struct switch_answer){.request = copy.answer,
                                     .state = copy.state,
                                     .error = copy.error,
                                     .functions = copy.functions,
                                     .opening_ns = copy.opening_ns,
                                     .telling_ns = copy.telling_ns,
                                     .lost = copy.lost};
    memcpy(answer->path, copy.path, sizeof answer->path - 1);
    memcpy(answer->text, copy.text, sizeof answer->text - 1);
    return 0;
}
