/* An error that is not to be retried immediately: what failed is tried again after RETRY_NS. */
#ifndef JITDUMP_FAILURE_H
#define JITDUMP_FAILURE_H

#include "jitdump/format/dump_clock.h"

#include <stdbool.h>
#include <stdint.h>

#define RETRY_NS UINT64_C(100000000)

struct failure {
    int error; /* 0: none */
    uint64_t failed_at_ns;
};

static inline void jd_failure_note(struct failure *failure, int error)
{
    failure->error = error;
    failure->failed_at_ns = error ? jd_clock_now(false) : 0;
}

/* Whether it is too early to try again. */
static inline bool jd_failure_is_fresh(const struct failure *failure)
{
    return failure->error && jd_clock_now(false) - failure->failed_at_ns < RETRY_NS;
}

#endif
