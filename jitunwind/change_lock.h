/* The lock of what is changed by one thread at a time, and read by any without it.
 *
 * Nobody waits for a thread that is stopped (brief_lock.h).  A thread that is gone in the middle of
 * a change, as in the child of a fork, or that left it by longjmp, leaves something half done:
 * nobody changes it any more, and what was published can still be read.
 */
#ifndef JITUNWIND_CHANGE_LOCK_H
#define JITUNWIND_CHANGE_LOCK_H

#include "jitdump/guest/brief_lock.h"

struct change_lock {
    struct brief_lock lock;
    atomic_bool changing; /* its holder is; without a holder: one was, and did not get to the end */
};

/* Take LOCK alone, of what a change that was left in the middle does no harm to.  Returns 0, or
 * -EAGAIN if its holder is stopped. */
int ju_lock(struct brief_lock *lock);

/* Have threads of this process remember their ids from now on.  One that calls this first does so
 * under a lock. */
void ju_remember_threads(void);

/* Begin a change.  Returns 0; -EAGAIN if the thread in one is stopped; -EOWNERDEAD if one was left
 * in the middle. */
int ju_change_begin(struct change_lock *lock);

void ju_change_end(struct change_lock *lock);

#endif
