/* Where this process's dump goes: DIR/jitdump-PID/jit-PID.dump, and its stage to
 * DIR/jitdump-PID/stage/jit-PID.dump; if there is a dump already that must be kept, to
 * DIR/jitdump-PID-2, or -3, ...  Readers look only at the last part of the path, and a JIT that
 * opens DIR/jit-PID.dump, in whatever way, does not interfere.
 *
 * A dump must be kept if it is locked, or mapped by this process, or was begun after this process
 * started.  Such a dump may be of another JIT in this process, of an earlier handle, of the program
 * before an exec, or of a process with our pid in another container.  Any other file of this user
 * with our name is from an earlier process with our pid, and is removed.  Without /proc nobody knows
 * when this process started: all are kept, and the oldest gives way when there are PLACES_MAX.
 */
#ifndef JITDUMP_DUMP_PLACE_H
#define JITDUMP_DUMP_PLACE_H

#include "jitdump/guest/first_error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

enum {
    PLACES_MAX = 999,
    DUMP_PLACE_BYTES = sizeof "/jitdump--999/stage/jit-.dump" +
                       2 * 20, /* after the directory: with the pid, twice, and NUL */
};

struct dump_place {
    const char *dir;
    pid_t pid;
    unsigned number;                     /* from 1 */
    bool made_folder, made_stage_folder; /* by this handle: else they are not its to remove */
};

/* The files of a place. */
struct dump_paths {
    char *body, *stage; /* of bytes each */
    size_t bytes;
};

/* The paths of PLACE into PATHS. */
void jd_place_paths(const struct dump_place *place, const struct dump_paths *paths);

/* Find a place where both files can be created, from *PLACE on, make its directories, and put its
 * paths into PATHS.  Returns 0 or a negative errno.  Only stale files are removed; in a directory
 * that everyone may write to, anything else may be a trap. */
int jd_place_find(struct dump_place *place, const struct dump_paths *paths,
                  struct first_error *error);

/* Whether there is a dump by now that must be kept. */
bool jd_place_is_taken(const char *path);

/* The remedy if nothing can be created there, to follow the text of ERROR. */
const char *jd_place_remedy(int error);

/* There is no stage: remove its directory, if jd_place_find made it. */
void jd_place_leave_stage(struct dump_place *place, const struct dump_paths *paths);

/* No file was created: remove the directories that jd_place_find made. */
void jd_place_leave(struct dump_place *place, const struct dump_paths *paths);

#endif
