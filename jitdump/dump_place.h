/* Where this process's dump goes: DIR/jit-PID.dump, unless a dump is there that is not to be lost; then DIR/jitdump-2/jit-PID.dump, or -3, ...
 * Readers look at the last part of the name only.
 *
 * Not to be lost is what is locked, or mapped by this process, or was begun since this process was: by another JIT in it, by an
 * earlier handle, by the program that was here before an exec, by a process with our pid in another container.  All else of this user with
 * our name is of an earlier process that had our pid, and is removed.
 */
#ifndef JITDUMP_DUMP_PLACE_H
#define JITDUMP_DUMP_PLACE_H

#include "jitdump/first_error.h"

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

enum {
    PLACES_MAX = 999,
    DUMP_PLACE_BYTES =
        sizeof "/jitdump-999/jit-.dump" + 20, /* behind the directory: with a pid and NUL */
};

struct dump_place {
    const char *dir;
    pid_t pid;
    unsigned number; /* 1: DIR itself */
};

/* The path of PLACE into PATH, of PATH_BYTES. */
void jd_place_path(const struct dump_place *place, char *path, size_t path_bytes);

/* Find a place where a file can be created, from *PLACE on, and put its path into PATH.  Returns 0 or a negative errno: only what is stale was
 * removed; in a directory that all may write to, anything else may be a trap. */
int jd_place_find(struct dump_place *place, char *path, size_t path_bytes,
                  struct first_error *error);

/* Whether a dump is there by now that is not to be lost. */
bool jd_place_is_taken(const char *path);

/* No file was made: leave no directory either. */
void jd_place_leave(const struct dump_place *place);

#endif
