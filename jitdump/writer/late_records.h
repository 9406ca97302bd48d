/* Moves and unloads that came while a stopped thread held the stage's lock; the next thread to hold
 * the lock writes them.
 *
 * Any number of threads may add records at once, and no thread waits for another, even if that one
 * is stopped in the middle. malloc is not used: a stopped thread may hold its lock.  A record kept
 * here is in no file yet: a kill before the next call loses it.
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
    _Atomic int32_t newest;  /* newest waiting record; each is linked to the one before; LATE_NONE:
                              * none */
    _Atomic uint64_t unused; /* the first unused record; in the upper half how often that has
                              * changed */
    _Atomic uint32_t chunk_count;
    _Atomic(struct late_record *) chunks[LATE_CHUNKS];
    int32_t first, last; /* taken records, in order; guarded by the stage's lock */
};

void jd_late_init(struct late_records *late);

/* When no thread can add any more; in a forked child as well. */
void jd_late_free(struct late_records *late);

/* Returns 0, or -ENOMEM: there are half a million already, or there is no memory. */
int jd_late_put(struct late_records *late, uint64_t time, const void *data, uint32_t bytes);

/* ---- With the stage's lock held ---- */

/* Whether records are waiting that have not been taken. */
static inline bool jd_late_are_waiting(const struct late_records *late)
{
    return atomic_load_explicit(&late->newest, memory_order_relaxed) != LATE_NONE;
}

static inline bool jd_late_any(const struct late_records *late)
{
    return jd_late_are_waiting(late) || late->first != LATE_NONE;
}

/* The oldest; NULL: none. */
const struct late_record *jd_late_first(struct late_records *late);

/* The oldest has been written. */
void jd_late_drop_first(struct late_records *late);

#endif
