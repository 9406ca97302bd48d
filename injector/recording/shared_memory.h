/* Executable memory that several processes share: mappings of one object, MAP_SHARED, at the same
 * addresses.  Code that one of them writes there is code of all.
 *
 *     master   |----[ rwxs /dev/zero, inode 9 ]------------------------------|
 *     worker          fork |------[ inherited ]----------------|
 *     other                            |--[ mapped: the same inode and address ]--|
 *
 * The evidence is the recording's: an MMAP2 with the flag and an inode, and forks.  A private
 * mapping, of the same file too, is each process's own.
 */
#ifndef PERFJIT_SHARED_MEMORY_H
#define PERFJIT_SHARED_MEMORY_H

#include "injector/recording/process_life.h"

/* One life's hold on addresses of one object. */
struct shared_hold {
    uint32_t life;
    uint32_t object;  /* number, from 0 on */
    bool inherited;   /* by fork, together with the code in it */
    uint64_t from_ns; /* of the mapping's record, or of the fork */
    uint64_t to_ns;   /* something else was mapped there, or the life ended */
    uint64_t start, end;
    const struct recorded_map *map;
};

struct shared_memory {
    struct shared_hold *holds; /* by life, then by start; of objects that several lives hold */
    size_t count, capacity;
    uint32_t *by_object; /* indices into the holds, by object */
    uint32_t *first;     /* by object, and one more: where its holds begin in by_object */
    size_t object_count;
};

/* Find the memory that the LIVES of PROFILE share; ORDER is process_lives_order's.  Returns 0, or
 * -1 without memory.  Release with shared_memory_free in either case. */
int shared_memory_find(struct shared_memory *memory, const struct process_lives *lives,
                       const uint32_t *order, const struct records *records);

/* The hold of LIFE on all of [START, END) at TIME_NS.  If LIFE gets it only later, as with memory
 * that was not executable yet, the first hold after TIME_NS.  NULL: that is no shared memory. */
const struct shared_hold *shared_memory_at(const struct shared_memory *memory, uint32_t life,
                                           uint64_t start, uint64_t end, uint64_t time_ns);

void shared_memory_free(struct shared_memory *memory);

#endif
