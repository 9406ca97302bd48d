/* Finds the file that a process mapped as its dump.
 *
 * The profile has the path as the process saw it.  Tried are
 *
 *     DIR/<path>                    --root DIR: the root file system of a container, or a copy of
 *                                   another machine's
 *     <path>
 *     /proc/<pid>/root/<path>       while the process lives: its own view of the file system
 *
 * If one of these is the very file that was mapped (dump_origin.h), it is taken.  Otherwise the
 * first in this order is taken that may be the file or a copy of it.  The opened file is the one
 * that is examined and read: the path may lead elsewhere by then.
 */
#ifndef PERFJIT_DUMP_PLACE_H
#define PERFJIT_DUMP_PLACE_H

#include "injector/log/owner/dump_origin.h"

enum dump_place_result {
    DUMP_PLACE_FOUND,
    DUMP_PLACE_MISSING,  /* there is no such file */
    DUMP_PLACE_REPLACED, /* the file there is another one, and not even a copy */
    DUMP_PLACE_UNUSABLE, /* the file there can't be read, or is no dump */
};

enum { DUMP_PLACE_TEXT_BYTES = 512 };

struct dump_place {
    char *path; /* owned by the caller; NULL unless FOUND or UNUSABLE */
    enum file_identity identity;
    struct jit_dump dump; /* if FOUND: opened, its path is PATH */
    char cause[256];      /* if UNUSABLE: why */
};

/* The process whose dump is wanted. */
struct dump_place_question {
    const struct dump_origin *origin;
    const struct process_life *life;
    const struct recorded_map *map;
    uint32_t number; /* the pid that its header must have */
    bool foreign; /* which is not the process's here: it lives in a container, and its path may be
                     another one's here */
    const char *root; /* NULL or a directory */
};

/* Find the file.  Returns -1 without memory. */
int dump_place_find(struct dump_place *place, const struct dump_place_question *question,
                    enum dump_place_result *result);

/* Write into TEXT the words for a missing file that come after its name.  They say where the file
 * may be, if that is known. */
void dump_place_missing(char text[DUMP_PLACE_TEXT_BYTES],
                        const struct dump_place_question *question);

struct live_process;

/* Whether LIFE goes on and is seen under its pid here: *LIVE has its facts from /proc then. */
bool dump_place_lives(const struct records *records, const struct process_life *life,
                      struct live_process *live);

#endif
