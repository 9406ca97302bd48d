/* Files that the runtimes of a run left outside its folder, because they can't be given another
 * place.  They are dumps in their working directory or in /tmp, perf maps in /tmp, and V8's logs
 * beside its dumps. */
#ifndef PERFJIT_LEFT_OVER_H
#define PERFJIT_LEFT_OVER_H

#include "injector/run/record/growing_recording.h"

#include <time.h>

/* Now, on the clock of files' times. */
struct timespec left_over_now(void);

struct left_over_request {
    struct timespec since; /* when the command was started */
    bool quiet;            /* what has to stay is not told */
    const char *root;      /* of the processes, in which they have their /tmp; or NULL */
    const char *dumps;     /* the run's folder for them; or NULL */
};

/* The dump that process PID wrote since then and did not map, by the pid in its name and its
 * header; to be freed, or NULL.  So it is with Mono, which opens it for writing alone. */
char *left_over_unmapped_dump(const struct growing_recording *recording, uint32_t pid,
                              const struct left_over_request *request);

/* Remove those that processes in RECORDING wrote since then, without those that an inner run keeps:
 * these are forgotten. */
void left_over_remove(struct growing_recording *recording, const struct left_over_request *request);

/* Have an outer run, whose directory for dumps is OUTER, keep what the processes in RECORDING
 * wrote. */
void left_over_keep(const struct growing_recording *recording, const char *outer);

#endif
