/* See debugger_list.h. */
#include "jitunwind/debugger_list.h"

#include "jitdump/guest/environment_word.h"
#include "jitunwind/change_lock.h"

#include <stddef.h>

enum { VERSION = 1, ACTION_NONE = 0, ACTION_ADDED = 1, ACTION_REMOVED = 2 };

struct debugger_descriptor {
    uint32_t version;
    uint32_t action;
    struct debugger_entry *relevant;
    struct debugger_entry *first;
};

/* Whichever definition in the process comes first serves all. */
#define INTERFACE __attribute__((weak, visibility("default")))

void __jit_debug_register_code(void);
extern struct debugger_descriptor __jit_debug_descriptor;

/* gdb has a breakpoint here. */
INTERFACE __attribute__((noinline)) void __jit_debug_register_code(void)
{
    __asm__ volatile("" ::: "memory");
}

INTERFACE struct debugger_descriptor __jit_debug_descriptor = {VERSION, ACTION_NONE, NULL, NULL};

static struct change_lock list_lock;

bool ju_debugger_wanted(void)
{
    return environment_has("gdb");
}

int ju_debugger_list_begin(void)
{
    return ju_change_begin(&list_lock);
}

void ju_debugger_list_end(void)
{
    ju_change_end(&list_lock);
}

static void tell(uint32_t action, struct debugger_entry *entry)
{
    __jit_debug_descriptor.relevant = entry;
    __jit_debug_descriptor.action = action;
    __jit_debug_register_code();
    __jit_debug_descriptor.action = ACTION_NONE;
    __jit_debug_descriptor.relevant = NULL;
}

void ju_debugger_list_add(struct debugger_entry *entry)
{
    struct debugger_entry *first = __jit_debug_descriptor.first;
    entry->previous = NULL;
    entry->next = first;
    if (first)
        first->previous = entry;
    atomic_thread_fence(memory_order_release); /* the entry comes before what leads to it */
    __jit_debug_descriptor.first = entry;
    tell(ACTION_ADDED, entry);
}

void ju_debugger_list_remove(struct debugger_entry *entry)
{
    struct debugger_entry **link =
        entry->previous ? &entry->previous->next : &__jit_debug_descriptor.first;
    *link = entry->next;
    if (entry->next)
        entry->next->previous = entry->previous;
    atomic_thread_fence(memory_order_release); /* and what follows comes behind that */
    tell(ACTION_REMOVED, entry);
}
