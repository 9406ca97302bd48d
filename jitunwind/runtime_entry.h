/* An arena's entry with the process's own unwinder: what throws C++ exceptions, libgcc or LLVM's
 * libunwind, whichever there is. */
#ifndef JITUNWIND_RUNTIME_ENTRY_H
#define JITUNWIND_RUNTIME_ENTRY_H

#include "jitunwind/frames/function_table.h"

/* Make TABLE known to it.  *ENTRY is what is given back to close.  Returns 0, or -ENOTSUP where
 * there is none, or on another machine. */
int ju_runtime_entry_open(struct function_table *table, void **entry);

/* ENTRY may be NULL. */
void ju_runtime_entry_close(void *entry);

#endif
