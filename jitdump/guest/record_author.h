/* The pid and tid of this thread, for records and locks. */
#ifndef JITDUMP_RECORD_AUTHOR_H
#define JITDUMP_RECORD_AUTHOR_H

#include "jitdump/guest/thread_data.h"

#include <stdint.h>

struct record_author {
    uint32_t pid;
    uint32_t tid;
};

extern JD_THREAD_DATA struct record_author jd_cached_author;

/* This thread's id, or, if a sandbox refuses it, a number that no other thread has. */
uint32_t jd_thread_id(void);

/* PID is this process's.  The kernel is asked once per thread and process. */
static inline struct record_author jd_author(uint32_t pid)
{
    if (jd_cached_author.pid != pid) {
        jd_cached_author.pid = pid;
        jd_cached_author.tid = jd_thread_id();
    }
    return jd_cached_author;
}

#endif
