/* Whether memory can be read, without a fault and without a signal handler.
 *
 * The kernel is asked once for each two pages.  A futex operation is to wait until some time, which
 * the kernel reads in the code, across the border of the pages: -EFAULT means that it can't.  The
 * operation never waits, since the futex, a word of this library, is said to have a value that it
 * does not have.  It is allowed wherever there are threads, and valgrind implements it.  Code of
 * less than 16 bytes, for which a time is too long, is asked for page by page, with an operation
 * that compares a word there with a number, and wakes and requeues nobody, whatever the outcome.
 * So is all code where the kernel ignores that it can't read a time.  If futexes are refused,
 * rt_sigprocmask with an invalid operation is used, which copies 8 bytes from there first.  If none
 * of them answers, the memory must not be read.  (Times on Linux 6.18, in a virtual machine, of a
 * page: a futex's time 120 ns, its word 300.  rt_sigprocmask 110, but valgrind prints a line about
 * it.  madvise(MADV_POPULATE_READ) 430, of two pages 595.  process_vm_readv 700.  epoll_ctl is
 * quick, but gVisor does not read the word.)
 *
 * That is as much as the rest of a record.  So a thread does not ask twice about a page within a
 * short time.  The time is measured from the answer, or from the start of the last call, to this
 * call.  It must be less than two questions take, and at most 600 ns.  In that time the thread
 * can't have unmapped or protected the page itself: that takes as long as four questions or more
 * (there 620 ns).  Both times are measured with the same clock.  With a clock that stands still, or
 * advances in steps longer than a question, a question takes no time or more than 600 ns.  Then
 * every call asks.  Another thread could have unmapped the page.  But to unmap code that is being
 * recorded is an error that no question prevents, since the copy follows the answer.  A protection
 * key can be changed without a system call.  A thread that takes away its own right to read, and
 * records the same page within that time, is killed by a fault.
 */
#ifndef JITDUMP_CODE_PROBE_H
#define JITDUMP_CODE_PROBE_H

#include "jitdump/guest/thread_data.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The last answer this thread got. */
struct code_answer {
    uintptr_t start, end; /* readable pages */
    uint64_t asked_ns;
    uint64_t used_ns;  /* when it was last used */
    uint64_t lasts_ns; /* how long it stays valid without being used */
};

enum {
    ASK_AGAIN_NS = 10000,    /* how long an answer lasts, however close the calls are */
    LEAST_PAGE_BYTES = 4096, /* of any machine */
};

extern JD_THREAD_DATA struct code_answer jd_code_answer;

/* An answer about several pages is kept only for those asked about again: otherwise a hit on the
 * first would keep it valid for the last. */
static inline bool jd_code_is_known(uintptr_t start, uintptr_t end, uint64_t now_ns)
{
    struct code_answer *answer = &jd_code_answer;
    uint64_t unused_ns = now_ns - answer->used_ns;
    if (start < answer->start || end > answer->end || end < start || now_ns == 0 ||
        unused_ns == 0 || unused_ns >= answer->lasts_ns ||
        now_ns - answer->asked_ns >= ASK_AGAIN_NS)
        return false;
    answer->used_ns = now_ns;
    answer->start = start & ~(uintptr_t)(LEAST_PAGE_BYTES - 1);
    answer->end = (end + LEAST_PAGE_BYTES - 1) & ~(uintptr_t)(LEAST_PAGE_BYTES - 1);
    return true;
}

/* As jd_code_is_readable, always asking the kernel. */
bool jd_code_ask(const void *bytes, size_t size, uint64_t now_ns);

/* Whether SIZE bytes at BYTES can be read.  NOW_NS is the time at which this call of the library
 * began; 0: unknown, and then the kernel is always asked. */
static inline bool jd_code_is_readable(const void *bytes, size_t size, uint64_t now_ns)
{
    uintptr_t start = (uintptr_t)bytes;
    return jd_code_is_known(start, start + size, now_ns) || jd_code_ask(bytes, size, now_ns);
}

#endif
