/* See change_lock.h. */
#include "jitunwind/change_lock.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

int ju_change_begin(struct change_lock *lock)
{
    int saved_errno = errno;
    int error = jd_lock(&lock->lock, (uint32_t)syscall(SYS_gettid), JD_PATIENCE_NS);
    errno = saved_errno;
    if (error)
        return error;
    if (lock->changing) {
        jd_unlock(&lock->lock);
        return -EOWNERDEAD;
    }
    lock->changing = true;
    return 0;
}

void ju_change_end(struct change_lock *lock)
{
    lock->changing = false;
    jd_unlock(&lock->lock);
}
