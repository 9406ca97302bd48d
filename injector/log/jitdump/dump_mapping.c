/* See dump_mapping.h. */
#include "injector/log/jitdump/dump_mapping.h"

#include "injector/arrays/hash.h"
#include "injector/files/file_bytes.h"
#include "injector/files/interruption.h"
#include "jitdump/format/jitdump_format.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
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

/* A file of at most this size is a stage, or a body that is small enough to be copied whole
 * (jitdump/writer/dump_stage.h). */
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

static void read_pages(uint8_t *data, int fd, size_t start, size_t end)
{
    ssize_t bytes = 1;
    for (size_t at = start; at < end && bytes > 0; at += (size_t)bytes)
        bytes = pread(fd, data + at, end - at, (off_t)at);
}

/* Put a copy of the file's bytes from START up to END, and of their pages' others, in their place.
 * Reading is safe if the writer has cut the file by now, as it does when it ends; the missing bytes
 * are zeros then. */
static bool copy_pages(uint8_t *data, int fd, size_t start, size_t end)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    start = start / page_bytes * page_bytes;
    if (start >= end)
        return true;
    if (mmap(data + start, end - start, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return false;
    read_pages(data, fd, start, end);
    return mprotect(data + start, end - start, PROT_READ) == 0;
}

static size_t size_of(int fd)
{
    struct stat status;
    return fstat(fd, &status) ? 0 : (size_t)status.st_size;
}

/* Whether it is a ring (jitdump/writer/dump_ring.h), which begins with a HISTORY or with a FILLER
 * in front of one.  Its writer goes back to bytes in front of the last record. */
static bool is_ring(const uint8_t *data, size_t size)
{
    size_t offset = JITHEADER_BYTES;
    for (int i = 0; i < 2 && offset + PREFIX_BYTES <= size; i++) {
        struct prefix prefix = prefix_at(data, offset);
        if (prefix.id == JIT_CODE_HISTORY)
            return true;
        if (prefix.id != JIT_FILLER || prefix.total_size >= size - offset)
            return false;
        offset += prefix.total_size;
    }
    return false;
}

/* The records before LIMIT, but for FILLERs, as a number that others would not have: ids, sizes,
 * times and places. */
static uint64_t digest(const uint8_t *data, size_t limit)
{
    uint64_t sum = 0;
    size_t offset = JITHEADER_BYTES;
    while (offset + JR_PREFIX_BYTES <= limit) {
        struct prefix prefix = prefix_at(data, offset);
        if (prefix.total_size < JR_PREFIX_BYTES || prefix.total_size > limit - offset)
            break;
        if (prefix.id != JIT_FILLER)
            sum = XXH3_64bits_withSeed(data + offset, JR_PREFIX_BYTES, sum ^ offset);
        offset += prefix.total_size;
    }
    return sum;
}

/* From LAST on the copy becomes empty, as it was when its end was looked for. */
static void empty_rest(uint8_t *copy, size_t last, size_t size)
{
    struct prefix filler = {JIT_FILLER, (uint32_t)(size - last)};
    memcpy(copy + last, &filler, sizeof filler);
}

/* Copy the whole, and before and after it the records' places.  A record that is there before and
 * after was there in between: a writer never shows the same record at the same place twice.
 * Without the look before, the front of a copy could be newer than the bytes behind it. */
static bool copy_whole(uint8_t *copy, uint8_t *look, int fd, size_t size)
{
    read_pages(look, fd, 0, size);
    size_t last = find_last(look, size);
    struct prefix end = {0};
    if (last < size)
        end = prefix_at(look, last);
    if (end.total_size > size - last)
        return false; /* the file is longer by now */
    size_t limit = end.id == JIT_FILLER ? last : size;
    uint64_t before = digest(look, limit);
    read_pages(copy, fd, 0, size);
    memset(look, 0, size); /* nothing is read where the file was cut */
    read_pages(look, fd, 0, size);
    if (end.id == JIT_FILLER)
        empty_rest(copy, last, size);
    return digest(look, limit) == before;
}

static bool freeze_whole(uint8_t *data, int fd, size_t size)
{
    uint8_t *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *look = malloc(size);
    bool enough = copy != MAP_FAILED && look; /* else it is read as it is */
    bool sound = !enough || copy_whole(copy, look, fd, size);
    free(look);
    if (enough && sound)
        sound = mprotect(copy, size, PROT_READ) == 0 &&
                mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, data) != MAP_FAILED;
    else if (copy != MAP_FAILED)
        munmap(copy, size);
    return sound;
}

/* A file that is cut within its last page gives zeros there instead of SIGBUS, and the cut would go
 * unnoticed. */
static void keep_last_page(uint8_t *data, int fd, size_t size)
{
    copy_pages(data, fd, size - 1, size);
}

/* Copy the FILLER that reaches to the end, because the next records will take its place.  Copy the
 * last page, too, if that is another page.  The FILLER's own page must not be read once more: it
 * would be newer.  Returns false if there are records in the FILLER's place by now, or if the file
 * is longer and the FILLER reaches past the mapped bytes.  *LASTING is what is in front of it: its
 * writer cuts it off when it ends. */
static bool freeze_large(uint8_t *data, int fd, size_t size, size_t *lasting)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), last = find_last(data, size);
    if (last == size) /* the file is being made longer */
        return false;
    bool copied = copy_pages(data, fd, last, last + PREFIX_BYTES);
    struct prefix filler = prefix_at(data, last);
    *lasting = filler.id == JIT_FILLER ? last : size;
    if (!copied) /* it is read as it is */
        return true;
    if (last / page_bytes != (size - 1) / page_bytes)
        keep_last_page(data, fd, size);
    return filler.id == JIT_FILLER && filler.total_size <= size - last;
}

/* *LASTING: as dump_mapping_make has it. */
static bool freeze(uint8_t *data, int fd, size_t size, size_t *lasting)
{
    *lasting = 0;
    return size <= SMALL_BYTES || is_ring(data, size) ? freeze_whole(data, fd, size)
                                                      : freeze_large(data, fd, size, lasting);
}

void dump_mapping_end(const uint8_t *data, size_t size)
{
    interruption_spare_end(data);
    munmap((void *)(uintptr_t)data, size);
}

const uint8_t *dump_mapping_make(int fd, struct stat *status, size_t *lasting)
{
    for (int i = 0;; i++) {
        size_t size = (size_t)status->st_size;
        const void *bytes = file_bytes(fd, status);
        if (!bytes)
            return NULL;
        interruption_spare(bytes, size, status);
        uint8_t *data =
            (uint8_t *)(uintptr_t)bytes; /* some pages are replaced, none is written to */
        if (i == TRIES || !is_being_written(fd)) {
            *lasting = size;
            keep_last_page(data, fd, size);
            return data;
        }
        if (freeze(data, fd, size, lasting))
            return data;
        dump_mapping_end(data, size);
        if (size_of(fd) > size && fstat(fd, status))
            return NULL;
    }
}
