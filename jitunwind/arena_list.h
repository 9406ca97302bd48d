/* The arenas of the process: a list that is changed under a lock and read without one. */
#ifndef JITUNWIND_ARENA_LIST_H
#define JITUNWIND_ARENA_LIST_H

#include "jitunwind/frames/function_table.h"
#include "jitunwind/jitunwind.h"

#include <pthread.h>

struct jitunwind {
    struct function_table table;
    pthread_mutex_t lock; /* of the table, and of what is below */
    struct table_row_draft *drafts;
    uint32_t draft_count, draft_max;
    _Atomic(struct jitunwind *) next;
    struct jitunwind *next_closed;
    uint32_t closed_in; /* the epoch: read_marks.h */
};

/* Put ARENA into the list.  Returns 0, or -EEXIST if it overlaps another one. */
int ju_arena_list_add(struct jitunwind *arena);

/* Take ARENA out, and free it as soon as nobody reads it. */
void ju_arena_list_drop(struct jitunwind *arena);

/* The arena with ADDR, or NULL.  Async-signal-safe, between read_begin and read_end. */
const struct jitunwind *ju_arena_list_find(uint64_t addr);

#endif
