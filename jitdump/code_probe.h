/* Whether memory can be read, without a fault and without a signal handler.
 *
 * The kernel is asked, once for each page: rt_sigprocmask copies 8 bytes from there before it looks at what is to be done with
 * them, which is nothing that exists; -EFAULT says that they can't be read.  That is the cheapest call that tells (110 ns,
 * Linux 6.18 in a virtual machine; MADV_POPULATE_READ 320 ns, process_vm_readv 730 ns), and still as much as the rest of a
 * record.  So a thread does not ask again for the pages that it has just asked for, if less than 300 ns lie between the
 * answer, or the beginning of the last call, and this call: in that time it can't have unmapped or protected them itself (which takes
 * 1100 ns and more, there).  Where the question takes longer all does, and the time may be twice the question's, up to 600 ns.
 * Another thread could have; but to do that to code that is being recorded is an error that no question prevents, since the
 * copy follows the answer.  A protection key can be changed without a system call: who takes away its own right to read and records
 * the same page within that time is ended by a fault.
 *
 * Other calls would do as well; but none is allowed in as many sandboxes.  valgrind notes each question (unknown 'how').
 */
#ifndef JITDUMP_CODE_PROBE_H
#define JITDUMP_CODE_PROBE_H

#include "jitdump/thread_data.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What this thread was told last. */
struct code_answer {
    uintptr_t start, end; /* readable pages */
    uint64_t asked_ns;
    uint64_t used_ns;  /* when it last was of use */
    uint64_t lasts_ns; /* so long it is good if it is not used */
};

enum { ASK_AGAIN_NS = 10000 /* so long an answer lasts, however close the calls are */ };

extern JD_THREAD_DATA struct code_answer jd_code_answer;

static inline bool jd_code_is_known(uintptr_t start, uintptr_t end, uint64_t now_ns)
{
    struct code_answer *answer = &jd_code_answer;
    if (start < answer->start || end > answer->end || end < start || now_ns == 0 ||
        now_ns - answer->used_ns >= answer->lasts_ns || now_ns - answer->asked_ns >= ASK_AGAIN_NS)
        return false;
    answer->used_ns = now_ns;
    return true;
}

/* As jd_code_is_readable, of the kernel. */
bool jd_code_ask(const void *bytes, size_t size, uint64_t now_ns);

/* Whether SIZE bytes at BYTES can be read.  NOW_NS is the time at which this call of the library began; 0: not known, and
 * then the kernel is asked in any case. */
static inline bool jd_code_is_readable(const void *bytes, size_t size, uint64_t now_ns)
{
    uintptr_t start = (uintptr_t)bytes;
    return jd_code_is_known(start, start + size, now_ns) || jd_code_ask(bytes, size, now_ns);
}

#endif
