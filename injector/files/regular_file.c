/* See regular_file.h. */
#include "injector/files/regular_file.h"

#include "injector/files/input_guard.h"

#include <errno.h>
#include <fcntl.h>
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

const char *regular_file_error(int error)
{
    return error == ENXIO ? "not a regular file" : strerror(error);
}
