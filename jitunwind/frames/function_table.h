/* The functions of an arena and the rules of their frames: changed under a lock, read without one.
 *
 *     granules   two numbers for each 64 bytes of the arena: of the first function that begins in
 *                them (which leads to the others), and of the one that began earlier and covers
 *                their first byte
 *     functions  number 0 is none
 *     rows       of each function, together: from this offset on this rule holds
 *     rules      each is there once
 *
 * Each of these is one reserved range of addresses that gets memory as it is used, and never moves.
 * An element is written before its number is published.  A removed function's number and rows are
 * used again only when it has no readers (read_marks.h).
 *
 * Rows are given out in blocks of a power of two, and a free block belongs to a free number.  When
 * no block is large enough, neighbours are joined.
 */
#ifndef JITUNWIND_FUNCTION_TABLE_H
#define JITUNWIND_FUNCTION_TABLE_H

#include "jitunwind/frames/frame_rule.h"
#include "jitunwind/frames/grown_memory.h"

#include <stdatomic.h>

enum {
    GRANULE_BYTES = 64,
    BYTES_PER_FUNCTION = 32,
    BYTES_PER_ROW = 8,
    ROW_CLASSES = 24,
    ROWS_MAX = 1 << (ROW_CLASSES - 1), /* of a function */
    NO_ROWS = ROW_CLASSES,             /* the class of numbers without a block */
    PROGRAM_BYTES = 8192,
    FIRST_RULE_SLOTS = 128,
    /* Granules that become writable at once, and how many such chunks an arena has at most. */
    GRANULES_AT_ONCE = GROWN_STEP_BYTES / 8,
    CHUNKS_MAX = UINT32_MAX / GRANULE_BYTES / GRANULES_AT_ONCE + 1,
};

struct table_granule {
    _Atomic uint32_t first;
    _Atomic uint32_t covering;
};

struct table_function {
    uint64_t start;
    uint32_t bytes;
    uint32_t first_row, row_count;
    _Atomic uint32_t next; /* next that begins in the same granule; kept when it is removed, since a
                              reader may follow it */
    uint32_t next_removed; /* or free */
    uint8_t row_class;     /* it has room for 1 << row_class rows, or none */
    char *name;            /* or NULL */
};

struct table_row {
    uint32_t offset;
    uint32_t rule;
};

/* A row that is to be written for a function. */
struct table_row_draft {
    uint32_t offset;
    struct frame_rule rule;
};

struct function_table {
    uint64_t start;
    uint32_t bytes;
    void *memory; /* for all of these: */
    size_t memory_bytes;
    struct table_granule *granules;
    struct table_function *functions;
    struct table_row *rows;
    struct frame_rule *rules;
    uint8_t *program; /* PROGRAM_BYTES: see table_program.h */
    struct grown_memory function_memory, row_memory, rule_memory, slot_memory;
    uint8_t writable[CHUNKS_MAX / 8 + 1]; /* a bit for each chunk of granules */
    uint32_t function_count, function_max, row_count, row_max, rule_count, rule_slot_count;
    uint32_t live_count;
    uint32_t *rule_slots;                        /* a hash table of their numbers: of its two, */
    uint32_t *more_rule_slots;                   /* for many, each of which takes a page in it, */
    uint32_t first_rule_slots[FIRST_RULE_SLOTS]; /* and for few */
    uint32_t free[ROW_CLASSES + 1];              /* lists of removed functions, by row class */
    bool may_join;           /* since blocks were last joined, one became free */
    bool lacks_memory;       /* the number that was wanted last */
    uint32_t removed;        /* a list of functions that may still have readers, */
    uint32_t waiting;        /* and one of functions without readers, from */
    uint32_t waiting_since;  /* this epoch plus EPOCHS_TO_WAIT on */
    _Atomic uint32_t reuses; /* of numbers: changed in front of one */
};

/* Make an empty table for the arena.  Returns 0 or -ENOMEM. */
int ju_function_table_open(struct function_table *table, uint64_t start, uint32_t bytes);

void ju_function_table_close(struct function_table *table);

/* Add a function of BYTES at START, inside the arena, with ROW_COUNT rows, ascending.  NAME is
 * taken over unless this fails.  Returns 0, -EEXIST, -ENOSPC or -ENOMEM. */
int ju_function_table_add(struct function_table *table, uint64_t start, uint32_t bytes,
                          const struct table_row_draft *rows, uint32_t row_count, char *name);

/* Free the names of removed functions that have no readers, and reuse the rest of them. */
void ju_function_table_recycle(struct function_table *table);

/* Returns 0 or -ENOENT. */
int ju_function_table_remove(struct function_table *table, uint64_t start);

/* The function with the byte at ADDR, which is in the arena, or NULL.  Async-signal-safe. */
const struct table_function *ju_function_table_find(const struct function_table *table,
                                                    uint64_t addr);

/* The rule that holds at ADDR in FUNCTION, or NULL.  Async-signal-safe. */
const struct frame_rule *ju_function_table_rule(const struct function_table *table,
                                                const struct table_function *function,
                                                uint64_t addr);

#endif
