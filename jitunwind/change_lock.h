/* A lock for data that one thread at a time changes, and that any thread reads without the lock.
 *
 * No thread waits long for a stopped one (brief_lock.h).  A thread may be gone in the middle of a
 * change, as in the child of a fork, or may leave it by longjmp.  The data is half changed then.
 * No thread changes it any more, and published data can still be read.
 */
#ifndef JITUNWIND_CHANGE_LOCK_H
#define JITUNWIND_CHANGE_LOCK_H

#include "jitdump/guest/brief_lock.h"

struct change_lock {
    struct brief_lock lock;
    atomic_bool changing; /* its holder is changing the data; without a holder: a change was not
                           * finished */
};

/* Take LOCK alone, for data that an unfinished change does not damage.  Returns 0, or -EAGAIN if
 * its holder is stopped. */
int ju_lock(struct brief_lock *lock);

/* From now on threads of this process remember their ids.  The first call must be under a lock. */
void ju_remember_threads(void);

/* Begin a change.  Returns 0; -EAGAIN if a stopped thread is in a change; -EOWNERDEAD if a change
 * was left unfinished. */
int ju_change_begin(struct change_lock *lock);

void ju_change_end(struct change_lock *lock);

#endif
