/* What a terminal shows while a recording grows: a line that is written over. */
#ifndef PERFJIT_RUN_PROGRESS_H
#define PERFJIT_RUN_PROGRESS_H

#include "injector/record/growing_recording.h"

#include <sys/types.h>

/* Whether the line can be shown beside process PID (0: a command that has this program's standard
 * error): it would erase what is printed on the same terminal. */
bool run_progress_has_room(pid_t pid);

/* Show what RECORDING has after so many SECONDS. */
void run_progress_show(struct growing_recording *recording, int64_t seconds);

void run_progress_end(void);

#endif
