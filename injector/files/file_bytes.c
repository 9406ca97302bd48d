/* See file_bytes.h. */
#include "injector/files/file_bytes.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_HOLE_BYTES ((off_t)1 << 30)

enum { CHUNK_BYTES = 1 << 16, BLOCK_BYTES = 512 /* st_blocks' */ };

/* The group's bits also hold the maximum of an access control list. */
bool file_bytes_may_change(const struct stat *status)
{
    bool trusted = status->st_uid == 0 || status->st_uid == geteuid();
    return !trusted || status->st_mode & (S_IWGRP | S_IWOTH);
}

static bool is_zero(const uint8_t *bytes, size_t count)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, count - 1) == 0;
}

/* Copy FD to the SIZE zeros at BYTES; less if it has become shorter. */
static int copy(int fd, uint8_t *bytes, size_t size)
{
    uint8_t chunk[CHUNK_BYTES];
    for (size_t at = 0; at < size;) {
        size_t wanted = size - at < CHUNK_BYTES ? size - at : CHUNK_BYTES;
        ssize_t count = pread(fd, chunk, wanted, (off_t)at);
        if (count == 0)
            return 0;
        if (count < 0 && errno != EINTR)
            return -1;
        if (count < 0)
            continue;
        if (!is_zero(chunk, (size_t)count))
            memcpy(bytes + at, chunk, (size_t)count);
        at += (size_t)count;
    }
    return 0;
}

/* MAP_NORESERVE: most of it may never be touched. */
static const void *copied(int fd, size_t size)
{
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED)
        return NULL;
    if (copy(fd, bytes, size) == 0)
        return bytes;
    int error = errno;
    munmap(bytes, size);
    errno = error;
    return NULL;
}

const void *file_bytes(int fd, const struct stat *status)
{
    size_t size = (size_t)status->st_size;
    if (!file_bytes_may_change(status)) {
        void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        return bytes == MAP_FAILED ? NULL : bytes;
    }
    if (status->st_size / BLOCK_BYTES - status->st_blocks > MAX_HOLE_BYTES / BLOCK_BYTES) {
        errno = EFBIG;
        return NULL;
    }
    return copied(fd, size);
}

const char *file_bytes_error(int error)
{
    return error == EFBIG ? "more than 1 GiB of it are holes, and others may write it"
                          : strerror(error);
}
