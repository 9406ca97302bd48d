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
    bool quiet;            /* files that have to stay are not reported */
};

/* Remove those that processes in RECORDING wrote since then. */
void left_over_remove(const struct growing_recording *recording,
                      const struct left_over_request *request);

#endif
