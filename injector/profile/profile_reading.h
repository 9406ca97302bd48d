/* From a recording to its profile: each sample's stack, walked or as it was recorded, with names.
 */
#ifndef PERFJIT_PROFILE_READING_H
#define PERFJIT_PROFILE_READING_H

#include "injector/history/process/process_reading.h"
#include "injector/history/timeline/timeline.h"
#include "injector/profile/call_profile.h"

/* What is read. */
struct profile_source {
    const struct records *records;
    const struct jit_processes *processes;
    const struct timeline *timelines; /* one a process */
    const char *root;                 /* where the processes' root directory is; or NULL */
    bool lines;                       /* nodes of each line, and not of each function */
};

/* Read all samples of SOURCE into TO.  Returns 0, or -1 with the failure text set.  Release TO with
 * call_profile_free in either case. */
int profile_reading_go(struct call_profile *to, const struct profile_source *source,
                       struct findings *findings);

#endif
