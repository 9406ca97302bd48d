/* An arena's entry with the process's own unwinder, which throws C++ exceptions: libgcc or LLVM's
 * libunwind. */
#ifndef JITUNWIND_RUNTIME_ENTRY_H
#define JITUNWIND_RUNTIME_ENTRY_H

#include "jitunwind/frames/function_table.h"

/* Register TABLE with the unwinder.  Pass *ENTRY to ju_runtime_entry_close.  Returns 0, or -ENOTSUP
 * if there is no such unwinder, or on another machine. */
int ju_runtime_entry_open(struct function_table *table, void **entry);

/* ENTRY may be NULL. */
void ju_runtime_entry_close(void *entry);

#endif
