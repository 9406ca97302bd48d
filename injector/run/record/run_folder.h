/* The directory of one run, for the files that its runtimes write and read.  It ends with the run:
 *
 *     DIR/dumps/          what JITDUMPDIR and the like name
 *     DIR/settings/       files that runtimes read (runtime.h)
 *     DIR/settings/ended  there when nothing is recorded any more
 *     DIR/perf.messages   what perf printed
 *
 * A run that another run's command starts has its folder among the other one's dumps, and leaves
 * them there: the outer run's recording has the same processes.  JITDUMPDIR tells of the outer run.
 *
 * Only the user may read it.  If root records services of other users, anybody may put dumps there,
 * as into /tmp, and may see only names. */
#ifndef PERFJIT_RUN_FOLDER_H
#define PERFJIT_RUN_FOLDER_H

#include "injector/findings/findings.h"
#include "injector/run/program/runtime.h"

#include <stdint.h>

/* In the settings; node_reach.js knows it, too. */
#define RUN_FOLDER_ENDED "ended"

struct run_folder {
    char *path; /* NULL: there is none */
    char *dumps, *settings, *messages;
    const char *root; /* as the command sees it, its paths begin behind that; or NULL */
    bool is_outers;   /* it is in that of an outer run */
    uint64_t undo;    /* undo_list.h */
};

/* The directory for dumps of the run whose folder NAME is in DUMPS, to be freed; NULL: NAME is no
 * folder's, or without memory. */
char *run_folder_inner(const char *dumps, const char *name);

/* Make it, where temporary_place_to_map says; or in the /tmp below ROOT, a directory that will be
 * the command's root, unless it is NULL or has none.  ROOT outlives FOLDER.  KEEP: not in an outer
 * run's.  Returns 0, or -1 with the failure text set.  Release with run_folder_remove in either
 * case. */
int run_folder_make(struct run_folder *folder, const char *root, bool keep,
                    struct findings *findings);

/* The directory for dumps of the run that this one is in, to be freed; NULL: it is in none. */
char *run_folder_outer(void);

/* PATH, one of those in FOLDER, as the command sees it. */
const char *run_folder_seen(const struct run_folder *folder, const char *path);

/* Write the files that RUNTIME reads.  Returns 0 or -1 as above. */
int run_folder_settle(const struct run_folder *folder, const struct runtime *runtime,
                      struct findings *findings);

/* Make the program NAME there, in bin/ of the settings: a link to TARGET, which finds TEXT in
 * NAME.words of the settings; unless an outer run made it.  Returns 1 if it can be run, or 0, or -1
 * as above. */
int run_folder_add_program(const struct run_folder *folder, const char *name, const char *target,
                           const char *text, struct findings *findings);

/* Tell what its settings start that nothing is recorded any more.  The folder stays for some time:
 * what was started a moment ago still finds what its words name. */
void run_folder_tell_end(const struct run_folder *folder);

/* Remove it with all that is in it; KEEP the dumps, or leave them to the outer run. */
void run_folder_remove(struct run_folder *folder, bool keep);

#endif
