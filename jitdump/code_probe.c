/* See code_probe.h. */
#include "jitdump/code_probe.h"
#include "jitdump/dump_clock.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    UNCHANGED_MIN_NS = 300,
    UNCHANGED_MAX_NS = 600, /* on a machine where the question takes half of that, or more */
    SIGNAL_SET_BYTES = (_NSIG - 1) / 8,
    NO_SUCH_HOW = -1,
};

JD_THREAD_DATA struct code_answer jd_code_answer;
static JD_THREAD_DATA uint64_t quickest_ns; /* a question about one page, with the clock; 0: none yet */

/* How long what can be read stays as it is: to change it takes some times as long as to ask about it, ten times as a rule. */
static uint64_t unchanged_ns(void)
{
    uint64_t limit = 2 * quickest_ns;
    limit = limit > UNCHANGED_MIN_NS ? limit : UNCHANGED_MIN_NS;
    return limit < UNCHANGED_MAX_NS ? limit : UNCHANGED_MAX_NS;
}

static bool page_is_readable(uintptr_t at, uintptr_t page_end)
{
    if (at > page_end - SIGNAL_SET_BYTES)
        at = page_end - SIGNAL_SET_BYTES;
    return syscall(SYS_rt_sigprocmask, NO_SUCH_HOW, at, NULL, SIGNAL_SET_BYTES) == 0 ||
           errno != EFAULT;
}

/* What the question took is not the caller's time: where it is slow, one question would lead to the next. */
static void remember(uintptr_t start, uintptr_t end, uint64_t now_ns)
{
    if (now_ns == 0)
        return;
    uint64_t answered_ns = jd_clock_now(false);
    if (quickest_ns == 0 || answered_ns - now_ns < quickest_ns)
        quickest_ns = answered_ns - now_ns;
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
    for (uintptr_t page = first_page; page < end; page += page_bytes)
        if (!page_is_readable(page < start ? start : page, page + page_bytes))
            return false;
    remember(first_page, (end + page_bytes - 1) / page_bytes * page_bytes, now_ns);
    return true;
}
