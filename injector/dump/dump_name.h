/* What dumps are called: jit-<pid>.dump; by JSC in Bun jit-<tid>-<pid>.dump, one for each thread,
 * or without a directory of its own jit-<tid>-<pid>-XXXXXX; and " (deleted)" behind that in a map
 * of one that is gone. */
#ifndef PERFJIT_DUMP_NAME_H
#define PERFJIT_DUMP_NAME_H

#include <stdbool.h>
#include <stdint.h>

/* The pid in the name at the end of PATH, or before " (deleted)" there.  Returns false if PATH is
 * not named so. */
bool jit_dump_name_pid(const char *path, uint32_t *pid);

/* Whether the last parts of the two paths are equal, but for " (deleted)". */
bool jit_dump_same_name(const char *path, const char *other);

#endif
