/* What the thread does that holds a lock. */
#ifndef JITDUMP_HOLDER_STATE_H
#define JITDUMP_HOLDER_STATE_H

#include <stdint.h>

enum holder_state {
    HOLDER_RUNS,    /* or could, or waits for a page */
    HOLDER_CALLS,   /* the system, as this library does with a lock held */
    HOLDER_STOPPED, /* waits for something that is none of this library's business */
    HOLDER_GONE,
    HOLDER_UNKNOWN, /* no /proc */
};

enum holder_state jd_holder_state(uint32_t thread);

/* Sleep in a way that jd_holder_state knows from anybody else's. */
void jd_holder_sleep(uint64_t ns);

#endif
