/* See change_lock.h. */
#include "jitunwind/change_lock.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

int ju_lock(struct brief_lock *lock)
{
    int saved_errno = errno;
    int error = jd_lock(lock, (uint32_t)syscall(SYS_gettid), JD_PATIENCE_NS);
    errno = saved_errno;
    return error;
}

int ju_change_begin(struct change_lock *lock)
{
    int error = ju_lock(&lock->lock);
    if (error)
        return error;
    if (atomic_load(&lock->changing)) {
        jd_unlock(&lock->lock);
        return -EOWNERDEAD;
    }
    atomic_store_explicit(&lock->changing, true, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* before the first of what is changed */
    return 0;
}

void ju_change_end(struct change_lock *lock)
{
    atomic_store_explicit(&lock->changing, false, memory_order_release);
    jd_unlock(&lock->lock);
}
