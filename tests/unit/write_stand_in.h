/* The library's pwritev, for tests of what is left when a write fails or the process is killed at
 * one: before it, behind it, or half way, where the kernel stops at a page's end. */
#ifndef PERFJIT_TEST_WRITE_STAND_IN_H
#define PERFJIT_TEST_WRITE_STAND_IN_H

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum mishap { NONE, KILL_BEFORE, KILL_AFTER, KILL_HALF_WAY, FAIL, FAIL_ONCE, INTERRUPT, SHORTEN };

static struct {
    enum mishap mishap;
    unsigned at; /* of which call; KILL_..., FAIL_ONCE */
    int error;   /* FAIL... */
    unsigned calls;
    unsigned across_pages; /* writes of 8 bytes, which a kill could tear */
} writes;

static ssize_t really_write(int fd, const struct iovec *pieces, int count, off_t offset)
{
    return syscall(SYS_pwritev, fd, pieces, count, offset, offset >> 32);
}

static ssize_t write_up_to(int fd, const struct iovec *pieces, off_t offset, size_t bytes)
{
    while (pieces->iov_len == 0)
        pieces++;
    struct iovec first = *pieces;
    first.iov_len = first.iov_len < bytes ? first.iov_len : bytes;
    return really_write(fd, &first, 1, offset);
}

static _Noreturn void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

ssize_t pwritev(int fd, const struct iovec *pieces, int count, off_t offset)
{
    unsigned call = ++writes.calls;
    writes.across_pages +=
        count == 1 && pieces[0].iov_len == 8 && offset % 4096 > 4096 - (off_t)sizeof(uint64_t);
    if (writes.mishap == FAIL || (writes.mishap == INTERRUPT && call % 2) ||
        (writes.mishap == FAIL_ONCE && call == writes.at)) {
        errno = writes.mishap == INTERRUPT ? EINTR : writes.error;
        return -1;
    }
    if (writes.mishap == SHORTEN)
        return write_up_to(fd, pieces, offset, call % 3 ? 4096 : 1);
    if (writes.mishap == KILL_BEFORE && call == writes.at)
        die();
    if (writes.mishap == KILL_HALF_WAY && call == writes.at) {
        write_up_to(fd, pieces, offset, (size_t)(4096 - offset % 4096));
        die();
    }
    ssize_t result = really_write(fd, pieces, count, offset);
    if (writes.mishap == KILL_AFTER && call == writes.at)
        die();
    return result;
}

#endif
