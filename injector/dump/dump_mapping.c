/* See dump_mapping.h. */
#include "injector/dump/dump_mapping.h"

#include "injector/files/file_bytes.h"
#include "jitdump/jitdump_format.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 20, PREFIX_BYTES = 8 };

/* Id and size, in this machine's byte order: the writer runs on it. */
struct prefix {
    uint32_t id, total_size;
};

static bool is_being_written(int fd)
{
    if (flock(fd, LOCK_SH | LOCK_NB))
        return errno == EWOULDBLOCK;
    flock(fd, LOCK_UN);
    return false;
}

static struct prefix prefix_at(const uint8_t *data, size_t offset)
{
    struct prefix prefix;
    memcpy(&prefix, data + offset, sizeof prefix);
    return prefix;
}

/* The first FILLER, or a place where there is no record: SIZE if all that is there are records. */
static size_t find_filler(const uint8_t *data, size_t size)
{
    size_t offset = JITHEADER_BYTES;
    while (offset + PREFIX_BYTES <= size) {
        struct prefix prefix = prefix_at(data, offset);
        if (prefix.id == JIT_FILLER)
            return offset;
        if (prefix.total_size < JR_PREFIX_BYTES || prefix.total_size > size - offset)
            return size;
        offset += prefix.total_size;
    }
    return size;
}

/* Put a copy of the file's bytes from START up to END, and of their pages' others, in their place.
 * Reading is safe where the writer has cut the file by now, as it does when it ends; what was there
 * is zeros then. */
static bool copy_pages(uint8_t *data, int fd, size_t start, size_t end)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    start = start / page_bytes * page_bytes;
    if (start >= end)
        return true;
    if (mmap(data + start, end - start, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return false;
    ssize_t bytes = 1;
    for (size_t at = start; at < end && bytes > 0; at += (size_t)bytes)
        bytes = pread(fd, data + at, end - at, (off_t)at);
    return mprotect(data + start, end - start, PROT_READ) == 0;
}

static size_t size_of(int fd)
{
    struct stat status;
    return fstat(fd, &status) ? 0 : (size_t)status.st_size;
}

/* Copy what may be moved.  Returns false if that happened meanwhile, which shows at the FILLER; or
 * if the file is longer by now and the FILLER behind what is mapped. */
static bool freeze(uint8_t *data, int fd, size_t size)
{
    struct prefix before, after;
    size_t filler = find_filler(data, size);
    if (filler == size)
        return size_of(fd) <= size;
    if (!copy_pages(data, fd, filler, filler + PREFIX_BYTES))
        return true; /* no memory: it is read as it is */
    before = prefix_at(data, filler);
    if (before.id != JIT_FILLER || before.total_size > size - filler)
        return false;
    if (!copy_pages(data, fd, filler + before.total_size, size))
        return true;
    return pread(fd, &after, sizeof after, (off_t)filler) == sizeof after &&
           memcmp(&before, &after, sizeof before) == 0;
}

/* A file that is cut within its last page gives zeros there instead of SIGBUS, so that nobody would
 * notice. */
static void keep_last_page(uint8_t *data, int fd, size_t size)
{
    copy_pages(data, fd, size - 1, size);
}

const uint8_t *dump_mapping_make(int fd, struct stat *status)
{
    for (int i = 0;; i++) {
        size_t size = (size_t)status->st_size;
        const void *bytes = file_bytes(fd, status);
        if (!bytes)
            return NULL;
        uint8_t *data =
            (uint8_t *)(uintptr_t)bytes; /* some pages are replaced, none is written to */
        if (i == TRIES || !is_being_written(fd) || freeze(data, fd, size)) {
            keep_last_page(data, fd, size);
            return data;
        }
        munmap(data, size);
        if (size_of(fd) > size && fstat(fd, status))
            return NULL;
    }
}
