/* An arena as debuggers see it: a few ELF objects, each for a range of its addresses.
 *
 * A debugger reads an object anew whenever it has changed, and its own costs are by the object.  So
 * new functions go into one of at most TAIL_FUNCTIONS.  When that object is full, and code
 * continues behind it or in front of it, a new object begins there.  MERGED neighbours that were
 * merged the same number of times become one.  To change something within an object of more than
 * MOST_CHANGED functions, the object is halved until it is small enough.  The ranges do not
 * overlap: gdb takes names from one object for each address.
 *
 * A function that was removed is buried when the next one is added, in front of which its addresses
 * are not used again.
 */
#ifndef JITUNWIND_DEBUGGER_ARENA_H
#define JITUNWIND_DEBUGGER_ARENA_H

#include "jitunwind/debugger_object.h"

enum {
    TAIL_FUNCTIONS = 512,
    TAIL_NAMES_BYTES = 16 << 10, /* most need no more */
    TAIL_FRAMES_BYTES = 32 << 10,
    MERGED = 16,
    MOST_CHANGED = 1024, /* functions of an object that is changed within */
};

struct debugger_arena;

/* For the arena of TABLE.  Returns NULL if there is no memory. */
struct debugger_arena *ju_debugger_arena_open(const struct function_table *table);

/* Remove all objects from the debuggers' list.  ARENA may be NULL. */
void ju_debugger_arena_close(struct debugger_arena *arena);

/* Before ADDITION is added to the table: make room for it, and bury removed functions.  Its number
 * is not known yet.  Unless this fails, with -EAGAIN or -ENOMEM, ju_debugger_arena_end follows, and
 * a change of ARENA is in progress all the time. */
int ju_debugger_arena_begin(struct debugger_arena *arena, const struct object_addition *addition);

/* Show it; the table did not take it if its number is 0. */
void ju_debugger_arena_end(struct debugger_arena *arena, const struct object_addition *addition);

/* The function NUMBER is being removed from the table. */
void ju_debugger_arena_remove(struct debugger_arena *arena, uint32_t number);

#endif
