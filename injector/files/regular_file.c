/* See regular_file.h. */
#include "injector/files/regular_file.h"

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

char *regular_file_bytes(const char *path, size_t most, size_t *bytes)
{
    struct stat status;
    const int fd = regular_file_open(path, 0, &status);
    *bytes = 0;
    if (fd < 0)
        return NULL;
    const size_t wanted = (size_t)status.st_size;
    char *text = wanted <= most ? malloc(wanted + 1) : NULL;
    int error = wanted <= most ? ENOMEM : EFBIG;
    ssize_t got = 1;
    while (text && *bytes < wanted && got > 0) {
        got = read(fd, text + *bytes, wanted - *bytes);
        *bytes += got > 0 ? (size_t)got : 0;
    }
    if (got < 0)
        error = errno;
    close(fd);
    if (text && got >= 0)
        return text;
    free(text);
    errno = error;
    return NULL;
}

const char *regular_file_error(int error)
{
    return error == ENXIO ? "not a regular file" : strerror(error);
}
