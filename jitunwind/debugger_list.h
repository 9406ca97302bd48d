/* The list of ELF objects that gdb, and others that know its JIT interface, read in this process.
 *
 * The list belongs to the process: other compilers add objects too, under locks of their own.  So
 * new objects go to its head, and only our own objects are removed.  A debugger may attach at any
 * moment, so each change is one pointer that makes an object reachable or not.
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

/* Begin changes of the list.  Returns 0; -EAGAIN if a stopped thread is in a change; -EOWNERDEAD if
 * a change was left unfinished.  The list is not changed any more then. */
int ju_debugger_list_begin(void);

void ju_debugger_list_end(void);

/* Put ENTRY into the list.  Its object must not change while it is there. */
void ju_debugger_list_add(struct debugger_entry *entry);

void ju_debugger_list_remove(struct debugger_entry *entry);

#endif
