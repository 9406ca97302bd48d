/* A lock for what takes less time than falling asleep, that does not wait for a thread that is
 * stopped.
 *
 * To unlock is a plain store, which does not wait until all that was written under the lock has
 * reached the cache; the atomic exchange of a mutex does, and that is an eighth of what a record
 * costs.  Nobody is woken, then: who has waited in vain for some time sleeps, in longer and longer
 * pieces up to SLEEP_MAX_NS, and looks again.
 *
 * The lock is its holder's thread id.  Collectors stop threads by a signal, wherever they are, and
 * then call this library; so who waits asks what the holder does.  If it runs, or is in a system
 * call that this library makes with a lock held, it will let go.  If it is gone, as by asynchronous
 * cancellation, or the asking thread itself, which left a call by a longjmp, the lock is taken
 * over.  If it is in any other system call somebody has stopped it, or it has left a call: what can
 * be put off is told -EAGAIN at once; else the thread waits 20 ms, since after a pause the one that
 * holds the lock may be the last to go on, and then is told so at once until the holder has let go.
 * The same holds where nobody says what the holder does, and where it seems to run for a second.
 */
#ifndef JITDUMP_BRIEF_LOCK_H
#define JITDUMP_BRIEF_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct brief_lock {
    _Atomic uint32_t holder;      /* 0: nobody */
    _Atomic uint32_t given_up_by; /* a thread that does not wait for the holder any more; 0: none */
};

/* How long a holder may seem to run: for what would be lost else, and for what can be put off. */
#define JD_PATIENCE_NS        UINT64_C(1000000000)
#define JD_LITTLE_PATIENCE_NS UINT64_C(100000000)

/* The slow way: it is held. */
int jd_lock_wait(struct brief_lock *lock, uint32_t thread, uint64_t patience_ns);

/* Take LOCK for THREAD, this one's id.  Returns 0, or -EAGAIN if its holder is stopped. */
static inline int jd_lock(struct brief_lock *lock, uint32_t thread, uint64_t patience_ns)
{
    uint32_t nobody = 0;
    if (atomic_compare_exchange_strong_explicit(&lock->holder, &nobody, thread,
                                                memory_order_acquire, memory_order_relaxed))
        return 0;
    return jd_lock_wait(lock, thread, patience_ns);
}

/* Take it whoever has it. */
static inline void jd_lock_seize(struct brief_lock *lock, uint32_t thread)
{
    atomic_exchange_explicit(&lock->holder, thread, memory_order_acquire);
}

static inline void jd_unlock(struct brief_lock *lock)
{
    if (atomic_load_explicit(&lock->given_up_by, memory_order_relaxed))
        atomic_store_explicit(&lock->given_up_by, 0, memory_order_relaxed);
    atomic_store_explicit(&lock->holder, 0, memory_order_release);
}

#endif
