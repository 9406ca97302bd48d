/* See dump_mapping.h. */
#include "injector/dump/dump_mapping.h"

#include "injector/files/file_bytes.h"
#include "jitdump/format/jitdump_format.h"

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

/* What can't be larger than this is a stage, or a body that is small enough to be copied whole
 * (jitdump/dump/dump_stage.h). */
enum { SMALL_BYTES = 2 << 20 };

/* The record that reaches to the end, or beyond it; SIZE if there is none, as where zeros
 * follow. */
static size_t find_last(const uint8_t *data, size_t size)
{
    size_t offset = JITHEADER_BYTES;
    while (offset + PREFIX_BYTES <= size) {
        struct prefix prefix = prefix_at(data, offset);
        if (prefix.total_size >= size - offset)
            return offset;
        if (prefix.total_size < JR_PREFIX_BYTES)
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

/* Copy the whole from front to back.  All that a writer changes in it is what stands after the
 * last record, unless it empties the stage: then the first record is another one. */
static bool freeze_small(uint8_t *data, int fd, size_t size)
{
    uint8_t before[JR_PREFIX_BYTES] = {0}, after[JR_PREFIX_BYTES] = {0};
    if (pread(fd, before, sizeof before, JITHEADER_BYTES) < 0 || !copy_pages(data, fd, 0, size))
        return true; /* no memory: it is read as it is */
    size_t last = find_last(data, size);
    if (last < size && prefix_at(data, last).total_size > size - last)
        return false; /* the file is longer by now */
    return pread(fd, after, sizeof after, JITHEADER_BYTES) >= 0 &&
           memcmp(before, after, sizeof before) == 0;
}

/* Copy the FILLER that reaches to the end, in place of which the next records will be.  Returns
 * false if that happened meanwhile; or if the file is longer by now and the FILLER after what is
 * mapped. */
static bool freeze_large(uint8_t *data, int fd, size_t size)
{
    size_t last = find_last(data, size);
    if (last == size) /* the file is being made longer */
        return false;
    if (!copy_pages(data, fd, last, last + PREFIX_BYTES))
        return true;
    struct prefix filler = prefix_at(data, last);
    return filler.id == JIT_FILLER && filler.total_size <= size - last;
}

static bool freeze(uint8_t *data, int fd, size_t size)
{
    return size <= SMALL_BYTES ? freeze_small(data, fd, size) : freeze_large(data, fd, size);
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
        bool written = i < TRIES && is_being_written(fd);
        if (!written || freeze(data, fd, size)) {
            if (!written || size > SMALL_BYTES)
                keep_last_page(data, fd, size);
            return data;
        }
        munmap(data, size);
        if (size_of(fd) > size && fstat(fd, status))
            return NULL;
    }
}
