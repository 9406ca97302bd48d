/* The line on a terminal while a recording grows.  It is written over. */
#ifndef PERFJIT_RUN_PROGRESS_H
#define PERFJIT_RUN_PROGRESS_H

#include "injector/run/record/growing_recording.h"

#include <sys/types.h>

/* Whether the line can be shown beside the COUNT processes PIDS.  It would erase their output on
 * the same terminal.  With no PIDS the question is about a command, which has this program's
 * standard error. */
bool run_progress_has_room(const pid_t *pids, size_t count);

/* Show the contents of RECORDING after so many SECONDS. */
void run_progress_show(struct growing_recording *recording, int64_t seconds);

void run_progress_end(void);

#endif
