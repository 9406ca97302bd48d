/* The state of the thread that holds a lock. */
#ifndef JITDUMP_HOLDER_STATE_H
#define JITDUMP_HOLDER_STATE_H

#include <stdint.h>

enum holder_state {
    HOLDER_RUNS,    /* or is runnable, or waits for a page */
    HOLDER_CALLS,   /* in a system call that this library makes with a lock held */
    HOLDER_STOPPED, /* in any other system call */
    HOLDER_GONE,
    HOLDER_UNKNOWN, /* no /proc */
};

enum holder_state jd_holder_state(uint32_t thread);

/* Sleep in a system call that jd_holder_state recognises as this library's. */
void jd_holder_sleep(uint64_t ns);

#endif
