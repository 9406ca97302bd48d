/* The backtraces that are reading now.  Removed memory may be reused or freed when all backtraces
 * that could have seen it have ended.  Nobody waits for that moment.
 *
 * Readers are counted by the parity of the epoch in which they began.  An epoch ends when no reader
 * of the epoch before it is left.  So a continuous stream of readers does not delay it.  Memory
 * that was removed in epoch E has no readers in E + EPOCHS_TO_WAIT.  Both counts have been 0 since,
 * in two checks that began after the removal.  (The check that ended E may have begun before it.)
 */
#ifndef JITUNWIND_READ_MARKS_H
#define JITUNWIND_READ_MARKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { EPOCHS_TO_WAIT = 3 };

extern _Atomic uint32_t ju_readers[2];
extern _Atomic uint32_t ju_epoch;

/* Returns what read_end wants. */
static inline unsigned read_begin(void)
{
    unsigned parity = atomic_load(&ju_epoch) & 1;
    atomic_fetch_add(&ju_readers[parity], 1);
    return parity;
}

static inline void read_end(unsigned parity)
{
    atomic_fetch_sub(&ju_readers[parity], 1);
}

/* The epoch now, after an attempt to end it.  An addition, not a load: it does not go ahead of the
 * stores that took something out. */
static inline uint32_t read_epoch(void)
{
    uint32_t epoch = atomic_load(&ju_epoch);
    if (atomic_fetch_add(&ju_readers[(epoch + 1) & 1], 0) == 0)
        atomic_compare_exchange_strong(&ju_epoch, &epoch, epoch + 1);
    return atomic_load(&ju_epoch);
}

/* Try to advance the epoch.  Returns whether memory that was removed in epoch SINCE has no readers
 * now. */
static inline bool read_is_over(uint32_t since)
{
    for (int i = 0; i < EPOCHS_TO_WAIT; i++)
        if (read_epoch() - since >= EPOCHS_TO_WAIT)
            return true;
    return false;
}

#endif
