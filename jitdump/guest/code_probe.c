/* See code_probe.h. */
#include "jitdump/guest/code_probe.h"
#include "jitdump/format/dump_clock.h"
#include "jitdump/guest/fork_mark.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef SYS_futex
enum { FUTEX_CALL = SYS_futex };
#else /* 32-bit machines that never had a time of 32 bits */
enum { FUTEX_CALL = SYS_futex_time64 };
#endif

enum {
    QUESTIONS_MIN = 8,      /* before the shortest is used: some may contain a step of the clock */
    UNCHANGED_MAX_NS = 600, /* two questions on a slow machine */
    SIGNAL_SET_BYTES = (_NSIG + 6) / 8, /* _NSIG is 65, or 128 (MIPS), for 8 bytes, or 16 */
    TIMEOUT_BYTES = 16,                 /* or 8, on some 32-bit machines */
    NO_SUCH_HOW = -1,
};

enum answer { READABLE, UNREADABLE, NO_ANSWER };

JD_THREAD_DATA struct code_answer jd_code_answer;

/* The time of this thread's questions about one page, including the time to read the clock. */
static JD_THREAD_DATA struct {
    uint32_t shortest_ns;
    uint32_t count; /* up to QUESTIONS_MIN */
} questions;

static uint32_t nobodys_futex;

static enum answer by_word(uintptr_t at)
{
    enum { NOBODY = 0, ANY_NUMBER = 0 };
    at -= at % sizeof(uint32_t);
    if (syscall(FUTEX_CALL, at, FUTEX_CMP_REQUEUE_PRIVATE, NOBODY, (long)NOBODY, &nobodys_futex,
                ANY_NUMBER) >= 0 ||
        errno == EAGAIN)
        return READABLE;
    return errno == EFAULT ? UNREADABLE : NO_ANSWER;
}

static enum answer by_sigprocmask(uintptr_t at, uintptr_t page_end)
{
    if (at > page_end - SIGNAL_SET_BYTES)
        at = page_end - SIGNAL_SET_BYTES;
    syscall(SYS_rt_sigprocmask, NO_SUCH_HOW, at, NULL, SIGNAL_SET_BYTES);
    if (errno == EINVAL)
        return READABLE;
    return errno == EFAULT ? UNREADABLE : NO_ANSWER;
}

/* The word is not what it is said to be, so this never waits. */
static enum answer by_timeout(uintptr_t at)
{
    enum { OTHER_VALUE = 1 };
    syscall(FUTEX_CALL, &nobodys_futex, FUTEX_WAIT_PRIVATE, OTHER_VALUE, at);
    if (errno == EINVAL || errno == EAGAIN)
        return READABLE;
    return errno == EFAULT ? UNREADABLE : NO_ANSWER;
}

/* qemu-user up to 6.1 ignores that it can't read a timeout.  (To try that with memory that can't be
 * read would be an error to valgrind.) */
static bool timeouts_are_read(uintptr_t page_bytes)
{
    enum { UNKNOWN, READ, IGNORED };
    static atomic_int known;
    int state = atomic_load_explicit(&known, memory_order_relaxed);
    if (state == UNKNOWN) {
        uintptr_t page = (uintptr_t)&nobodys_futex / page_bytes * page_bytes;
        state = jd_advice_is_ignored((void *)page, page_bytes) ? IGNORED : READ;
        atomic_store_explicit(&known, state, memory_order_relaxed);
    }
    return state == READ;
}

static bool page_is_readable(uintptr_t at, uintptr_t page_end)
{
    enum answer answer = by_word(at);
    if (answer == NO_ANSWER)
        answer = by_sigprocmask(at, page_end);
    return answer == READABLE;
}

static bool pages_are_readable(uintptr_t start, uintptr_t end, uintptr_t page_bytes)
{
    for (uintptr_t page = start / page_bytes * page_bytes; page < end; page += page_bytes)
        if (!page_is_readable(page < start ? start : page, page + page_bytes))
            return false;
    return true;
}

/* A timeout that lies across the border of two pages asks for both.  It lies in the code:
 * what is beside the code may be nobody's. */
static enum answer by_timeouts(uintptr_t start, uintptr_t end, uintptr_t page_bytes)
{
    uintptr_t border = (start / page_bytes + 1) * page_bytes;
    if (end - start < TIMEOUT_BYTES || !timeouts_are_read(page_bytes))
        return NO_ANSWER;
    for (;; border += 2 * page_bytes) {
        uintptr_t at = border - TIMEOUT_BYTES / 2;
        at = at > end - TIMEOUT_BYTES ? end - TIMEOUT_BYTES : at;
        enum answer answer = by_timeout(at < start ? start : at);
        if (answer != READABLE || end - border <= page_bytes || border >= end)
            return answer;
    }
}

/* How long what can be read stays as it is. */
static uint64_t unchanged_ns(void)
{
    uint64_t limit = UINT64_C(2) * questions.shortest_ns;
    if (questions.count < QUESTIONS_MIN)
        return 0;
    return limit < UNCHANGED_MAX_NS ? limit : UNCHANGED_MAX_NS;
}

/* The question's own time is not counted: with slow questions, one would lead to the next. */
static void remember(uintptr_t start, uintptr_t end, bool one_page, uint64_t now_ns)
{
    uint64_t answered_ns = jd_clock_now(false), took_ns = answered_ns - now_ns;
    if (one_page && (questions.count == 0 || took_ns < questions.shortest_ns))
        questions.shortest_ns = took_ns < UINT32_MAX ? (uint32_t)took_ns : UINT32_MAX;
    questions.count += one_page && questions.count < QUESTIONS_MIN;
    jd_code_answer = (struct code_answer){start, end, now_ns, answered_ns, unchanged_ns()};
}

bool jd_code_ask(const void *bytes, size_t size, uint64_t now_ns)
{
    uintptr_t start = (uintptr_t)bytes, end = start + size;
    if (size == 0)
        return true;
    if (end < start)
        return false;
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first_page = start / page_bytes * page_bytes;
    enum answer answer = by_timeouts(start, end, page_bytes);
    if (answer == NO_ANSWER)
        answer = pages_are_readable(start, end, page_bytes) ? READABLE : UNREADABLE;
    if (answer != READABLE)
        return false;
    if (now_ns)
        remember(first_page, (end + page_bytes - 1) / page_bytes * page_bytes,
                 end - first_page <= page_bytes, now_ns);
    return true;
}
