/* See record_author.h. */
#include "jitdump/guest/record_author.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A lock word is its holder's id, so two threads with the same id would both hold it.  As a pid_t a
 * substitute is negative, so that no system call mistakes it for a thread that is gone. */
#define SUBSTITUTE_BIT UINT32_C(0x80000000)

uint32_t jd_thread_id(void)
{
    static _Atomic uint32_t substitutes;
    long tid = syscall(SYS_gettid);
    return tid > 0 ? (uint32_t)tid : SUBSTITUTE_BIT | atomic_fetch_add(&substitutes, 1);
}
