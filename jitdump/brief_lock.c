/* See brief_lock.h. */
#include "jitdump/brief_lock.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LOOKS = 12, PAUSES_MAX = 16, SLEEP_MIN_NS = 1000, SLEEP_MAX_NS = 100000 };

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Each look takes the lock's line from the cache of whoever holds it, and then he, with all that he has in his cache, is faster
 * than the one who looks: so the looks become rarer. */
static bool becomes_free(const struct brief_lock *lock)
{
    for (int look = 0, pauses = 1; look < LOOKS; look++) {
        for (int i = 0; i < pauses; i++)
            pause_briefly();
        if (!atomic_load_explicit(&lock->held, memory_order_relaxed))
            return true;
        pauses = pauses < PAUSES_MAX ? pauses * 2 : pauses;
    }
    return false;
}

void jd_lock_wait(struct brief_lock *lock)
{
    struct timespec sleep = {0, SLEEP_MIN_NS};
    do {
        while (!becomes_free(lock)) {
            /* Not by nanosleep(), which is a cancellation point. */
            syscall(SYS_nanosleep, &sleep, NULL);
            if (sleep.tv_nsec < SLEEP_MAX_NS)
                sleep.tv_nsec *= 2;
        }
    } while (atomic_exchange_explicit(&lock->held, true, memory_order_acquire));
}
