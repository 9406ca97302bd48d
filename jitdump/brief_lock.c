/* See brief_lock.h. */
#include "jitdump/brief_lock.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LOOKS = 12, PAUSES_MIN = 64, PAUSES_MAX = 128, SLEEP_MIN_NS = 1000, SLEEP_MAX_NS = 100000 };

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Not too eager: when the lock changes hands, what it guards goes from one processor's cache to the other's, which takes longer than
 * a record.  Who holds it has it again ten times before the one who waits looks.  (Two threads on two processors: 180 ns a
 * record, and 270 with one pause between the first looks.) */
static bool becomes_free(const struct brief_lock *lock)
{
    for (int look = 0, pauses = PAUSES_MIN; look < LOOKS; look++) {
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
