/* See full_write.h. */
#include "injector/files/full_write.h"

#include "injector/files/interruption.h"

#include <errno.h>
#include <unistd.h>

int full_write(int fd, off_t offset, const void *bytes, size_t count)
{
    bool stands = offset == WRITE_WHERE_IT_STANDS;
    for (size_t done = 0; done < count;) {
        const char *next = (const char *)bytes + done;
        ssize_t written = stands ? write(fd, next, count - done)
                                 : pwrite(fd, next, count - done, offset + (off_t)done);
        if (written < 0 && errno == EINTR && !interruption_came())
            continue;
        if (written == 0)
            errno = ENOSPC;
        if (written <= 0)
            return -1;
        done += (size_t)written;
    }
    return 0;
}
