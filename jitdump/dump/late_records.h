/* Moves and unloads that came while the stage's lock was held by a thread that is stopped: who next
 * holds the lock writes them.
 *
 * Any number of threads may put at once, and any of them may be stopped for ever in the middle:
 * nobody waits for it.  Nothing is allocated by malloc, whose lock a stopped thread may hold.  A
 * record that is put is in no file: a kill before the next call loses it.
 */
#ifndef JITDUMP_LATE_RECORDS_H
#define JITDUMP_LATE_RECORDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { LATE_RECORD_BYTES = 64, LATE_CHUNKS = 256, LATE_CHUNK_RECORDS = 2048, LATE_NONE = -1 };

struct late_record {
    _Atomic int32_t next; /* LATE_NONE: no other */
    uint32_t bytes;
    uint64_t time;
    uint8_t data[LATE_RECORD_BYTES]; /* with id and size */
};

struct late_records {
    _Atomic int32_t
        newest; /* of those that are waiting, each followed by the one before; LATE_NONE: none */
    _Atomic uint64_t unused; /* the first one, and in the upper half how often that changed */
    _Atomic uint32_t chunk_count;
    _Atomic(struct late_record *) chunks[LATE_CHUNKS];
    int32_t first,
        last; /* of those that were taken, in their order; of who holds the stage's lock */
};

void jd_late_init(struct late_records *late);

/* When no thread can put any more; in a forked child as well. */
void jd_late_free(struct late_records *late);

/* Returns 0, or -ENOMEM: there are half a million already, or there is no memory. */
int jd_late_put(struct late_records *late, uint64_t time, const void *data, uint32_t bytes);

/* ---- For who holds the stage's lock ---- */

/* Some that have not been taken. */
static inline bool jd_late_are_waiting(const struct late_records *late)
{
    return atomic_load_explicit(&late->newest, memory_order_relaxed) != LATE_NONE;
}

static inline bool jd_late_any(const struct late_records *late)
{
    return jd_late_are_waiting(late) || late->first != LATE_NONE;
}

/* The one that was put first; NULL: none. */
const struct late_record *jd_late_first(struct late_records *late);

/* It is written. */
void jd_late_drop_first(struct late_records *late);

#endif
