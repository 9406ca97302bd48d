/* See late_records.h. */
#include "jitdump/writer/late_records.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

enum { CHUNK_BYTES = LATE_CHUNK_RECORDS * sizeof(struct late_record) };

static struct late_record *record_at(struct late_records *late, int32_t index)
{
    return atomic_load_explicit(&late->chunks[index / LATE_CHUNK_RECORDS], memory_order_acquire) +
           index % LATE_CHUNK_RECORDS;
}

void jd_late_init(struct late_records *late)
{
    memset(late, 0, sizeof *late);
    atomic_init(&late->newest, LATE_NONE);
    atomic_init(&late->unused, (uint32_t)LATE_NONE);
    late->first = LATE_NONE;
    late->last = LATE_NONE;
}

void jd_late_free(struct late_records *late)
{
    for (uint32_t i = 0; i < LATE_CHUNKS; i++) {
        void *chunk = atomic_load_explicit(&late->chunks[i], memory_order_relaxed);
        if (chunk)
            munmap(chunk, CHUNK_BYTES);
    }
    jd_late_init(late);
}

/* ---- Unused records ---- */

/* The count in the upper half prevents the ABA problem: a thread that has slept can't take an old
 * head of the list for the current one. */
static uint64_t head(uint64_t before, int32_t index)
{
    return ((before >> 32) + 1) << 32 | (uint32_t)index;
}

/* Put the chain FROM...TO at the head of the unused records. */
static void give_back(struct late_records *late, int32_t from, int32_t to)
{
    uint64_t before = atomic_load_explicit(&late->unused, memory_order_relaxed);
    do
        atomic_store_explicit(&record_at(late, to)->next, (int32_t)(uint32_t)before,
                              memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&late->unused, &before, head(before, from),
                                                  memory_order_release, memory_order_relaxed));
}

static int32_t take_unused(struct late_records *late)
{
    uint64_t before = atomic_load_explicit(&late->unused, memory_order_acquire);
    int32_t index, next;
    do {
        index = (int32_t)(uint32_t)before;
        if (index == LATE_NONE)
            return LATE_NONE;
        next = atomic_load_explicit(&record_at(late, index)->next, memory_order_relaxed);
    } while (!atomic_compare_exchange_weak_explicit(&late->unused, &before, head(before, next),
                                                    memory_order_acquire, memory_order_acquire));
    return index;
}

/* The first record of a new chunk; the others become unused ones. */
static int32_t take_of_new_chunk(struct late_records *late)
{
    uint32_t number = atomic_load_explicit(&late->chunk_count, memory_order_relaxed);
    do
        if (number == LATE_CHUNKS)
            return LATE_NONE;
    while (!atomic_compare_exchange_weak_explicit(&late->chunk_count, &number, number + 1,
                                                  memory_order_relaxed, memory_order_relaxed));
    void *chunk =
        mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk == MAP_FAILED)
        return LATE_NONE;
    atomic_store_explicit(&late->chunks[number], chunk, memory_order_release);
    int32_t start = (int32_t)number * LATE_CHUNK_RECORDS, end = start + LATE_CHUNK_RECORDS;
    for (int32_t index = start + 1; index < end - 1; index++)
        atomic_init(&record_at(late, index)->next, index + 1);
    give_back(late, start + 1, end - 1);
    return start;
}

/* ---- Adding and taking ---- */

int jd_late_put(struct late_records *late, uint64_t time, const void *data, uint32_t bytes)
{
    int32_t index = take_unused(late);
    if (index == LATE_NONE)
        index = take_of_new_chunk(late);
    if (index == LATE_NONE)
        return -ENOMEM;
    struct late_record *record = record_at(late, index);
    record->time = time;
    record->bytes = bytes;
    memcpy(record->data, data, bytes);
    int32_t before = atomic_load_explicit(&late->newest, memory_order_relaxed);
    do
        atomic_store_explicit(&record->next, before, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&late->newest, &before, index,
                                                  memory_order_release, memory_order_relaxed));
    return 0;
}

/* Append the waiting records to those that were taken already. */
static void take_all(struct late_records *late)
{
    int32_t index = atomic_exchange_explicit(&late->newest, LATE_NONE, memory_order_acquire);
    int32_t first = LATE_NONE, last = index;
    while (index != LATE_NONE) {
        struct late_record *record = record_at(late, index);
        int32_t before = atomic_load_explicit(&record->next, memory_order_relaxed);
        atomic_store_explicit(&record->next, first, memory_order_relaxed);
        first = index;
        index = before;
    }
    if (first == LATE_NONE)
        return;
    if (late->first == LATE_NONE)
        late->first = first;
    else
        atomic_store_explicit(&record_at(late, late->last)->next, first, memory_order_relaxed);
    late->last = last;
}

const struct late_record *jd_late_first(struct late_records *late)
{
    take_all(late);
    return late->first == LATE_NONE ? NULL : record_at(late, late->first);
}

void jd_late_drop_first(struct late_records *late)
{
    int32_t index = late->first;
    late->first = atomic_load_explicit(&record_at(late, index)->next, memory_order_relaxed);
    give_back(late, index, index);
}
