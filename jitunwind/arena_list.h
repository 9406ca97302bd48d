/* The arenas of the process: a list that is changed under a lock and read without one. */
#ifndef JITUNWIND_ARENA_LIST_H
#define JITUNWIND_ARENA_LIST_H

#include "jitunwind/change_lock.h"
#include "jitunwind/frames/function_table.h"
#include "jitunwind/jitunwind.h"

struct jitunwind {
    struct function_table table;
    struct change_lock lock;         /* of the table */
    void *runtime_entry;             /* of runtime_entry.h, or NULL */
    struct debugger_arena *debugger; /* or NULL: debuggers are not informed */
    atomic_bool closed;              /* it is not found any more */
    _Atomic(struct jitunwind *) next;
    struct jitunwind *next_closed;
    uint32_t closed_in; /* the epoch: read_marks.h */
};

/* Put ARENA into the list.  Returns 0; -EEXIST if it overlaps another one; or -EAGAIN. */
int ju_arena_list_add(struct jitunwind *arena);

/* Hide ARENA from all lookups.  A later add or drop removes and frees it, as soon as it has no
 * readers. */
void ju_arena_list_drop(struct jitunwind *arena);

/* The arena with ADDR, or NULL.  Async-signal-safe, between read_begin and read_end. */
const struct jitunwind *ju_arena_list_find(uint64_t addr);

#endif
