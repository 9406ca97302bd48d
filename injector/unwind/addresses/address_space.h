/* The mapped files, memory and JIT functions of one life of a process, while time goes on.
 *
 * A child begins with its parent's state at the fork, and a program that was execed with that of
 * the program before.  It is played while the parent stands still there, and uses the parent's
 * state for everything that it has not mapped itself.
 */
#ifndef PERFJIT_ADDRESS_SPACE_H
#define PERFJIT_ADDRESS_SPACE_H

#include "injector/arrays/address_map.h"
#include "injector/history/timeline/timeline.h"
#include "injector/log/code/jit_process.h"

/* A number for the owner of an address: a map's number in the profile, or SPACE_FUNCTION and a
 * function's, counted over all processes, or SPACE_NOTHING. */
#define SPACE_FUNCTION (UINT32_C(1) << 31)
#define SPACE_NOTHING  (SPACE_FUNCTION - 1)

/* The sources of all data in a space. */
struct space_source {
    const struct records *records;
    const struct jit_processes *processes;
    const struct timeline *timelines; /* one a process */
    size_t *process_of;               /* by life: its process, or SIZE_MAX */
    uint32_t *first_function;         /* by process: its first function's number */
    uint32_t function_count;          /* of all processes */
};

/* Returns 0, or -1 without memory.  Release with space_source_free in either case. */
int space_source_begin(struct space_source *source, const struct records *records,
                       const struct jit_processes *processes, const struct timeline *timelines);

/* Function number NUMBER, of process *PROCESS. */
const struct jit_function *space_function(const struct space_source *source, uint32_t number,
                                          size_t *process);

void space_source_free(struct space_source *source);

/* Addresses that are kept apart when something changes. */
enum { SPACE_BLOCK_BITS = 16, SPACE_BLOCKS = 4096 };

struct address_space {
    const struct space_source *source;
    uint32_t life;
    const struct address_space *parent; /* or NULL */
    size_t process;                     /* or SIZE_MAX */
    struct address_map map;
    const struct recorded_map *maps; /* of this life, by time */
    size_t map_count, next_map, next_change;
    unsigned depth;
    uint64_t version; /* counts the played events */
    /* The version since which the blocks with this remainder, and large ranges, are as they are. */
    uint64_t changed[SPACE_BLOCKS], all_changed;
};

/* Begin LIFE, forked or execed from PARENT, which goes nowhere until the life is ended, or NULL.
 * Returns 0, or -1 without memory.  Release with address_space_end in either case. */
int address_space_begin(struct address_space *space, const struct space_source *source,
                        uint32_t life, const struct address_space *parent);

/* Play the events up to TIME_NS, and at it.  Returns 0, or -1 without memory. */
int address_space_play(struct address_space *space, uint64_t time_ns);

/* The number of the owner of ADDR. */
uint32_t address_space_at(const struct address_space *space, uint64_t addr);

/* A version since which ADDR has the owner that it has. */
uint64_t address_space_since(const struct address_space *space, uint64_t addr);

void address_space_end(struct address_space *space);

#endif
