/* See brief_lock.h. */
#include "jitdump/guest/brief_lock.h"
#include "jitdump/format/dump_clock.h"
#include "jitdump/guest/holder_state.h"

#include <errno.h>

enum { LOOKS = 12, PAUSES_MIN = 64, PAUSES_MAX = 128, SLEEP_MIN_NS = 1000, SLEEP_MAX_NS = 100000 };

#define STOPPED_FOR_NS UINT64_C(20000000)
#define LOOK_MAX_NS    UINT64_C(1000000)

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Not too eagerly: when the lock changes hands, the data it guards moves from one processor's cache
 * to the other's, which takes longer than a record.  The holder takes it again ten times before the
 * waiting thread looks.  (Two threads on two processors: 180 ns a record, and 270 with one pause
 * between the first looks.) */
static bool becomes_free(const struct brief_lock *lock)
{
    for (int look = 0, pauses = PAUSES_MIN; look < LOOKS; look++) {
        for (int i = 0; i < pauses; i++)
            pause_briefly();
        if (!atomic_load_explicit(&lock->holder, memory_order_relaxed))
            return true;
        pauses = pauses < PAUSES_MAX ? pauses * 2 : pauses;
    }
    return false;
}

static bool take_from(struct brief_lock *lock, uint32_t holder, uint32_t thread)
{
    return atomic_compare_exchange_strong_explicit(&lock->holder, &holder, thread,
                                                   memory_order_acquire, memory_order_relaxed);
}

/* A thread that waits, and for which holder. */
struct wait {
    uint32_t holder;
    uint32_t turn;
    uint64_t waited_ns; /* while that one held the lock, without unlocking */
    uint64_t looked_ns;
    uint64_t sleep_ns;
    uint64_t patience_ns;
};

static uint64_t time_for(const struct wait *wait, enum holder_state state)
{
    switch (state) {
    case HOLDER_CALLS:
        return UINT64_MAX;
    case HOLDER_STOPPED:
        return wait->patience_ns == JD_PATIENCE_NS ? STOPPED_FOR_NS : 0;
    default: /* nothing proves that an unknown one is stopped */
        return wait->patience_ns;
    }
}

/* Whether HOLDER has had all the time it gets since it took the lock.  A look counts for
 * LOOK_MAX_NS at most.  A collector that stops the holder stops the waiting thread as well: while
 * the waiting thread could not look, the holder could not continue either. */
static bool is_over(struct wait *wait, const struct brief_lock *lock, uint32_t holder,
                    enum holder_state state)
{
    uint64_t now_ns = jd_clock_now(false), passed_ns = now_ns - wait->looked_ns;
    uint32_t turn = atomic_load_explicit(&lock->turn, memory_order_relaxed);
    if (wait->holder == holder && wait->turn == turn)
        wait->waited_ns += passed_ns < LOOK_MAX_NS ? passed_ns : LOOK_MAX_NS;
    else
        wait->waited_ns = 0;
    wait->holder = holder;
    wait->turn = turn;
    wait->looked_ns = now_ns;
    return wait->waited_ns >= time_for(wait, state);
}

/* Whether THREAD has waited for HOLDER in vain, and HOLDER has not continued since.  One that
 * seemed to run all the time, or may have, counts as stopped until it unlocks.  An operation that
 * can be postponed does not ask. */
static bool is_given_up(const struct brief_lock *lock, uint32_t holder, uint32_t thread,
                        uint64_t patience_ns)
{
    if (atomic_load_explicit(&lock->given_up_by, memory_order_relaxed) != thread)
        return false;
    if (patience_ns != JD_PATIENCE_NS ||
        atomic_load_explicit(&lock->seemed_to_run, memory_order_relaxed))
        return true;
    return jd_holder_state(holder) == HOLDER_STOPPED;
}

static void give_up(struct brief_lock *lock, uint32_t thread, enum holder_state state)
{
    atomic_store_explicit(&lock->seemed_to_run, state != HOLDER_STOPPED, memory_order_relaxed);
    atomic_store_explicit(&lock->given_up_by, thread, memory_order_relaxed);
}

static void sleep_longer(struct wait *wait)
{
    jd_holder_sleep(wait->sleep_ns);
    if (wait->sleep_ns < SLEEP_MAX_NS)
        wait->sleep_ns *= 2;
}

int jd_lock_wait(struct brief_lock *lock, uint32_t thread, uint64_t patience_ns)
{
    struct wait wait = {.sleep_ns = SLEEP_MIN_NS, .patience_ns = patience_ns};
    for (;;) {
        uint32_t holder = atomic_load_explicit(&lock->holder, memory_order_relaxed);
        if (holder == thread) /* left behind by a longjmp */
            return 0;
        if (holder != 0 && is_given_up(lock, holder, thread, patience_ns))
            return -EAGAIN;
        if (holder == 0 || becomes_free(lock)) {
            if (take_from(lock, 0, thread))
                return 0;
            continue;
        }
        enum holder_state state = jd_holder_state(holder);
        if (state == HOLDER_GONE && take_from(lock, holder, thread))
            return 0;
        if (is_over(&wait, lock, holder, state) &&
            atomic_load_explicit(&lock->holder, memory_order_relaxed) == holder) {
            if (patience_ns == JD_PATIENCE_NS)
                give_up(lock, thread, state);
            return -EAGAIN;
        }
        sleep_longer(&wait);
    }
}
