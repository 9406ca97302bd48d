/* Where this process's dump goes: DIR/jitdump-PID/jit-PID.dump, and its stage to
 * DIR/jitdump-PID/stage/jit-PID.dump; if a dump is there that is not to be lost, to
 * DIR/jitdump-PID-2, or -3, ...  Readers look at the last part of the name only; and a JIT that
 * opens DIR/jit-PID.dump, whatever is there and however it opens it, is in nobody's way.
 *
 * Not to be lost is what is locked, or mapped by this process, or was begun since this process was:
 * by another JIT in it, by an earlier handle, by the program that was here before an exec, by a
 * process with our pid in another container.  All else of this user with our name is of an earlier
 * process that had our pid, and is removed.
 */
#ifndef JITDUMP_DUMP_PLACE_H
#define JITDUMP_DUMP_PLACE_H

#include "jitdump/guest/first_error.h"

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

enum {
    PLACES_MAX = 999,
    DUMP_PLACE_BYTES = sizeof "/jitdump--999/stage/jit-.dump" +
                       2 * 20, /* behind the directory: with the pid, twice, and NUL */
};

struct dump_place {
    const char *dir;
    pid_t pid;
    unsigned number; /* from 1 */
};

/* What is at a place. */
struct dump_paths {
    char *body, *stage; /* of bytes each */
    size_t bytes;
};

/* The paths of PLACE into PATHS. */
void jd_place_paths(const struct dump_place *place, const struct dump_paths *paths);

/* Find a place where both files can be created, from *PLACE on, make its directories, and put its
 * paths into PATHS.  Returns 0 or a negative errno: only what is stale was removed; in a directory
 * that all may write to, anything else may be a trap. */
int jd_place_find(struct dump_place *place, const struct dump_paths *paths,
                  struct first_error *error);

/* Whether a dump is there by now that is not to be lost. */
bool jd_place_is_taken(const char *path);

/* What to do when nothing can be created there, behind the text of ERROR. */
const char *jd_place_remedy(int error);

/* There is to be no stage: leave no directory for it. */
void jd_place_leave_stage(const struct dump_place *place);

/* No file was made: leave no directory either. */
void jd_place_leave(const struct dump_place *place);

#endif
