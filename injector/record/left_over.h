/* What the runtimes of a run left elsewhere than in its folder, because nothing tells them another
 * place: dumps where they ran or in /tmp, perf maps in /tmp, V8's logs beside its dumps. */
#ifndef PERFJIT_LEFT_OVER_H
#define PERFJIT_LEFT_OVER_H

#include "injector/record/growing_recording.h"

#include <time.h>

/* Now, on the clock of files' times. */
struct timespec left_over_now(void);

/* Remove those that processes in RECORDING wrote SINCE the command was started. */
void left_over_remove(const struct growing_recording *recording, struct timespec since);

#endif
