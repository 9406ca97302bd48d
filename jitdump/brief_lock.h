/* A lock for what takes less time than falling asleep.
 *
 * To unlock is a plain store, which does not wait until all that was written under the lock has reached the cache; the atomic
 * exchange of a mutex does, and that is an eighth of what a record costs.  Nobody is woken, then: who has waited
 * in vain for some time sleeps, in longer and longer pieces up to SLEEP_MAX_NS, and looks again.
 */
#ifndef JITDUMP_BRIEF_LOCK_H
#define JITDUMP_BRIEF_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>

struct brief_lock {
    atomic_bool held;
};

/* The slow way: it is held. */
void jd_lock_wait(struct brief_lock *lock);

static inline void jd_lock(struct brief_lock *lock)
{
    if (atomic_exchange_explicit(&lock->held, true, memory_order_acquire))
        jd_lock_wait(lock);
}

static inline void jd_unlock(struct brief_lock *lock)
{
    atomic_store_explicit(&lock->held, false, memory_order_release);
}

#endif
