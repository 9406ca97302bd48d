/* The clock, for tests of what the library does again after some time: it stands still where the
 * time must not pass, however busy the machine is, and goes ahead where nobody needs to wait. */
#ifndef PERFJIT_TEST_CLOCK_STAND_IN_H
#define PERFJIT_TEST_CLOCK_STAND_IN_H

#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* What failed is not tried again for 100 ms (jitdump/guest/failure.h). */
enum { RETRY_SECONDS = 1 };

static time_t clock_ahead_seconds;
static struct timespec clock_stands_at; /* tv_sec 0: it does not */

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = 0;
    if (clock_stands_at.tv_sec)
        *now = clock_stands_at;
    else
        result = (int)syscall(SYS_clock_gettime, clock, now);
    now->tv_sec += clock_ahead_seconds;
    return result;
}

__attribute__((unused)) static void stop_clock(void)
{
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &clock_stands_at);
}

__attribute__((unused)) static void pass_retry_time(void)
{
    clock_ahead_seconds += RETRY_SECONDS;
}

__attribute__((unused)) static void restore_clock(void)
{
    clock_ahead_seconds = 0;
    clock_stands_at.tv_sec = 0;
}

#endif
