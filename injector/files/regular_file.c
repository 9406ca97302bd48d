/* See regular_file.h. */
#include "injector/files/regular_file.h"

#include "injector/arrays/array.h"
#include "injector/files/input_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* O_NONBLOCK: it may be a FIFO since it was looked at. */
int regular_file_open(const char *path, int flags, struct stat *status)
{
    if (flags & O_NOFOLLOW ? lstat(path, status) : stat(path, status))
        return -1;
    errno = S_ISLNK(status->st_mode) ? ELOOP : ENXIO;
    if (!S_ISREG(status->st_mode))
        return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
    if (fd < 0)
        return fd;
    if (fstat(fd, status) == 0 && S_ISREG(status->st_mode)) {
        input_guard_input(status);
        return fd;
    }
    close(fd);
    errno = ENXIO;
    return -1;
}

int regular_file_read(int fd, char *to, size_t *bytes)
{
    size_t filled = 0;
    ssize_t count = 1;
    while (filled < *bytes && count != 0) {
        count = read(fd, to + filled, *bytes - filled);
        if (count > 0)
            filled += (size_t)count;
        else if (count < 0 && errno != EINTR)
            return -1;
    }
    *bytes = filled;
    return 0;
}

char *regular_file_bytes(const char *path, size_t most, size_t *bytes)
{
    struct stat status;
    const int fd = regular_file_open(path, 0, &status);
    if (fd < 0)
        return NULL;
    *bytes = (size_t)status.st_size;
    char *text = *bytes <= most ? malloc(*bytes + 1) : NULL;
    int error = *bytes <= most ? ENOMEM : EFBIG;
    if (text)
        array_in_large_pages(text, *bytes);
    if (text && regular_file_read(fd, text, bytes)) {
        error = errno;
        free(text);
        text = NULL;
    }
    close(fd);
    if (!text)
        errno = error;
    return text;
}

const char *regular_file_error(int error)
{
    return error == ENXIO ? "not a regular file" : strerror(error);
}
