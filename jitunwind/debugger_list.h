/* The list of ELF objects that gdb, and others that know its JIT interface, read in this process.
 *
 * The list is the process's: other compilers put theirs into it, too, under locks of their own.  So
 * what is new goes to its head, and only what is ours is taken out.  A debugger may come at any
 * moment: each change is one pointer by which it is reached or not.
 *
 * Source: gdb's manual, "JIT Compilation Interface".
 */
#ifndef JITUNWIND_DEBUGGER_LIST_H
#define JITUNWIND_DEBUGGER_LIST_H

#include <stdbool.h>
#include <stdint.h>

/* As the interface has it. */
struct debugger_entry {
    struct debugger_entry *next, *previous;
    const uint8_t *object;
    uint64_t object_bytes;
};

/* Whether the environment wants it: PERFJIT has the word gdb. */
bool ju_debugger_wanted(void);

/* Begin changes of the list.  Returns 0; -EAGAIN if the thread in one is stopped; -EOWNERDEAD if
 * one was left in the middle: it stays as it is then. */
int ju_debugger_list_begin(void);

void ju_debugger_list_end(void);

/* Put ENTRY into the list, whose object does not change while it is there. */
void ju_debugger_list_add(struct debugger_entry *entry);

void ju_debugger_list_remove(struct debugger_entry *entry);

#endif
