/* See change_lock.h. */
#include "jitunwind/change_lock.h"

#include "jitdump/guest/fork_mark.h"
#include "jitdump/guest/thread_data.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The mark of the process in which it was set.  It is never freed: the process's threads may use it
 * until they end. */
static struct fork_mark process_mark;
static atomic_bool is_marked;
static JD_THREAD_DATA uint32_t remembered_id; /* of this thread, in that process */

void ju_remember_threads(void)
{
    if (is_marked)
        return;
    jd_fork_mark_set(&process_mark);
    atomic_store_explicit(&is_marked, true, memory_order_release);
}

/* A child asks the kernel each time: its thread's memory says what the parent's thread was. */
static uint32_t thread_id(void)
{
    if (!atomic_load_explicit(&is_marked, memory_order_acquire) ||
        jd_fork_mark_is_inherited(&process_mark))
        return (uint32_t)syscall(SYS_gettid);
    if (!remembered_id)
        remembered_id = (uint32_t)syscall(SYS_gettid);
    return remembered_id;
}

int ju_lock(struct brief_lock *lock)
{
    int saved_errno = errno;
    int error = jd_lock(lock, thread_id(), JD_PATIENCE_NS);
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
    atomic_thread_fence(memory_order_seq_cst); /* before the first change */
    return 0;
}

void ju_change_end(struct change_lock *lock)
{
    atomic_store_explicit(&lock->changing, false, memory_order_release);
    jd_unlock(&lock->lock);
}
