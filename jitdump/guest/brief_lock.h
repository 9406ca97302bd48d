/* A lock for critical sections shorter than falling asleep takes, which does not wait for a stopped
 * thread.
 *
 * Unlocking is a plain store.  It does not wait until everything written under the lock has reached
 * the cache.  A mutex's atomic exchange does wait, which is an eighth of the cost of a record.  So
 * no thread is woken: a thread that has spun in vain sleeps, for longer and longer up to
 * SLEEP_MAX_NS, and looks again.
 *
 * The lock word is its holder's thread id.  Collectors stop threads by a signal, wherever they are,
 * and then call this library, so a waiting thread asks what the holder is doing.  If the holder
 * runs, or is in a system call that this library makes with a lock held, it will unlock.  If it is
 * gone, as after asynchronous cancellation, or is the asking thread itself, which left a call by
 * longjmp, the lock is taken over.  If it is in any other system call, it has been stopped or has
 * left a call.  Then an operation that can be postponed gets -EAGAIN at once.  Any other operation
 * waits 20 ms, since after a pause the holder may be the last thread to continue.  Then it gets
 * -EAGAIN.  Later ones get -EAGAIN at once while the holder is still stopped.  A holder that seems
 * to run, and has not unlocked for a second, counts as stopped until it unlocks.  So does a holder
 * of unknown state: a process that has dropped its rights, has no descriptor left or no /proc,
 * can't see its threads, and nearly always they work.
 */
#ifndef JITDUMP_BRIEF_LOCK_H
#define JITDUMP_BRIEF_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct brief_lock {
    _Atomic uint32_t holder;      /* 0: nobody */
    _Atomic uint32_t given_up_by; /* a thread that no longer waits for the holder; 0: none */
    atomic_bool seemed_to_run;    /* the holder did or may have, when that thread gave up */
    _Atomic uint32_t turn;        /* how often it was unlocked: the holder continues */
};

/* How long a holder may seem to run: for what would be lost otherwise, and for what can be
 * postponed. */
#define JD_PATIENCE_NS        UINT64_C(1000000000)
#define JD_LITTLE_PATIENCE_NS UINT64_C(100000000)

/* The slow path: the lock is held. */
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

/* Take it, whoever holds it. */
static inline void jd_lock_seize(struct brief_lock *lock, uint32_t thread)
{
    atomic_exchange_explicit(&lock->holder, thread, memory_order_acquire);
}

static inline void jd_unlock(struct brief_lock *lock)
{
    if (atomic_load_explicit(&lock->given_up_by, memory_order_relaxed))
        atomic_store_explicit(&lock->given_up_by, 0, memory_order_relaxed);
    uint32_t turn = atomic_load_explicit(&lock->turn, memory_order_relaxed);
    atomic_store_explicit(&lock->turn, turn + 1, memory_order_relaxed); /* the holder's alone */
    atomic_store_explicit(&lock->holder, 0, memory_order_release);
}

#endif
