/* See dump_clock.h. */
#include "jitdump/format/dump_clock.h"

#include <time.h>

#if defined(__x86_64__)

enum { HAS_COUNTER = true };

/* The fence keeps the CPU from reading the counter ahead of the lock that orders the records. */
static uint64_t counter_now(void)
{
    __builtin_ia32_lfence();
    return __builtin_ia32_rdtsc();
}

#elif defined(__aarch64__)

enum { HAS_COUNTER = true };

static uint64_t counter_now(void)
{
    uint64_t cycles;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(cycles) : : "memory");
    return cycles;
}

#else

enum { HAS_COUNTER = false };

static uint64_t counter_now(void)
{
    return 0;
}

#endif

bool jd_clock_has_counter(void)
{
    return HAS_COUNTER;
}

uint64_t jd_clock_now(bool counter)
{
    struct timespec now;
    if (counter)
        return counter_now();
    clock_gettime(CLOCK_MONOTONIC, &now); /* in the vDSO: no system call */
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
