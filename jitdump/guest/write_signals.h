/* The signals that a write to another's file may raise, kept from a program that does not expect
 * them.
 *
 * Only system calls: nothing that a sanitizer, or a preloaded library, has put around libc's
 * functions is in the way, and none is a cancellation point.  Async-signal-safe.
 */
#ifndef JITDUMP_WRITE_SIGNALS_H
#define JITDUMP_WRITE_SIGNALS_H

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WRITE_SIGNALS_BYTES = 8 }; /* of a set of signals, in the kernel */

struct write_signals {
    uint64_t blocked, pending; /* of this thread, before */
};

static inline uint64_t jd_signal_bit(int number)
{
    return UINT64_C(1) << (number - 1);
}

/* Block what a write may raise: without a reader, past RLIMIT_FSIZE, to another session's terminal.
 * A blocked SIGTTOU is not even sent.  Returns 0 or a negative errno. */
static inline int jd_write_signals_block(struct write_signals *before)
{
    const uint64_t signals =
        jd_signal_bit(SIGPIPE) | jd_signal_bit(SIGXFSZ) | jd_signal_bit(SIGTTOU);
    before->pending = 0;
    if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, &signals, &before->blocked,
                (size_t)WRITE_SIGNALS_BYTES) != 0)
        return -errno;
    syscall(SYS_rt_sigpending, &before->pending, (size_t)WRITE_SIGNALS_BYTES);
    return 0;
}

/* Remove the signal that this thread has been sent. */
static inline void jd_take_signal(int number)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    const uint64_t wanted = jd_signal_bit(number);
    const long at_once[2] = {0, 0}; /* the kernel's timespec */
    struct sigaction before;
    long taken;
    do
        taken = syscall(SYS_rt_sigtimedwait, &wanted, NULL, at_once, (size_t)WRITE_SIGNALS_BYTES);
    while (taken < 0 && errno == EINTR);
    /* In a sandbox that refuses this: a signal that is ignored is not pending any more. */
    if (taken < 0 && errno != EAGAIN && sigaction(number, &ignore, &before) == 0)
        sigaction(number, &before, NULL);
}

/* After the last write, which ended in ERROR, a negative errno, or in 0: it has sent a signal,
 * unless one was there before. */
static inline void jd_write_signals_restore(const struct write_signals *before, int error)
{
    const int raised = error == -EPIPE ? SIGPIPE : error == -EFBIG ? SIGXFSZ : 0;
    if (raised && !(before->pending & jd_signal_bit(raised)))
        jd_take_signal(raised);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before->blocked, NULL, (size_t)WRITE_SIGNALS_BYTES);
}

#endif
