/* See code_probe.h. */
#include "jitdump/code_probe.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    UNCHANGED_NS = 300,
    ASK_AGAIN_NS = 10000, /* so long an answer lasts, however close the calls are */
    SIGNAL_SET_BYTES = (_NSIG - 1) / 8,
    NO_SUCH_HOW = -1,
};

/* What this thread was told last. */
struct answer {
    uintptr_t start, end; /* readable pages */
    uint64_t asked_ns;
    uint64_t used_ns; /* when it last was of use */
};

static __thread struct answer last_answer;

static bool is_known(uintptr_t start, uintptr_t end, uint64_t now_ns)
{
    struct answer *answer = &last_answer;
    if (start < answer->start || end > answer->end || now_ns == 0 ||
        now_ns - answer->used_ns >= UNCHANGED_NS || now_ns - answer->asked_ns >= ASK_AGAIN_NS)
        return false;
    answer->used_ns = now_ns;
    return true;
}

static bool page_is_readable(uintptr_t at, uintptr_t page_end)
{
    if (at > page_end - SIGNAL_SET_BYTES)
        at = page_end - SIGNAL_SET_BYTES;
    return syscall(SYS_rt_sigprocmask, NO_SUCH_HOW, at, NULL, SIGNAL_SET_BYTES) == 0 ||
           errno != EFAULT;
}

bool jd_code_is_readable(const void *bytes, size_t size, uint64_t now_ns)
{
    uintptr_t start = (uintptr_t)bytes, end = start + size;
    if (size == 0 || is_known(start, end, now_ns))
        return true;
    if (end < start)
        return false;
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first_page = start / page_bytes * page_bytes;
    for (uintptr_t page = first_page; page < end; page += page_bytes)
        if (!page_is_readable(page < start ? start : page, page + page_bytes))
            return false;
    last_answer = (struct answer){first_page, (end + page_bytes - 1) / page_bytes * page_bytes,
                                  now_ns, now_ns};
    return true;
}
