/* Where the file is that a process mapped as its dump.
 *
 * The profile has the path as the process saw it.  Tried are, in this order,
 *
 *     DIR/<path>                    --root DIR: the root file system of a container, or a copy of another machine's
 *     <path>
 *     /proc/<pid>/root/<path>       while the process lives: its own view of the file system
 *
 * A file of the same name need not be the same file.  The profile has the device and inode of what was mapped: on that
 * device another inode is another file.  On another device nothing can be said (overlayfs and btrfs show the kernel one
 * device and stat(2) another; and the file may have been copied).
 */
#ifndef PERFJIT_DUMP_PLACE_H
#define PERFJIT_DUMP_PLACE_H

#include "injector/jit/process_life.h"

#include <sys/stat.h>

enum dump_place_result {
    DUMP_PLACE_FOUND,
    DUMP_PLACE_MISSING,  /* there is no such file */
    DUMP_PLACE_REPLACED, /* what is there is another file */
};

enum { DUMP_PLACE_TEXT_BYTES = 512 };

struct dump_place {
    char *path; /* owned by the caller */
    bool exact; /* device and inode are those of the mapping */
    dev_t dev;
    ino_t ino;
};

/* Find the file that MAP of LIFE names.  FOREIGN: its name does not have the process's pid, so the process lives in a
 * container and PATH as it stands may be another one's.  ROOT is NULL or a directory.  Fills in *PLACE if it is found.
 * Returns -1 without memory. */
int dump_place_find(struct dump_place *place, const struct profile *profile,
                    const struct process_life *life, const struct profile_map *map, bool foreign,
                    const char *root, enum dump_place_result *result);

/* What to say of a file that is not to be found, behind its name, into TEXT: where it may be, if anything tells.  Arguments as
 * above. */
void dump_place_missing(char text[DUMP_PLACE_TEXT_BYTES], const struct profile *profile,
                        const struct profile_map *map, bool foreign, const char *root);

/* Whether LIFE goes on and is seen under its pid here, and its pid in its innermost namespace; for the latter
 * *NAMESPACE_PID is set. */
bool dump_place_lives(const struct profile *profile, const struct process_life *life,
                      uint32_t *namespace_pid);

enum file_identity { FILE_SAME, FILE_OTHER, FILE_UNKNOWN };

/* Whether the file with the given device and inode is the one that MAP maps. */
enum file_identity dump_place_compare(const struct perf_map *map, dev_t dev, ino_t ino);

#endif
