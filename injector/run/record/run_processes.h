/* The processes of a run that go on: those that the recording knows of, and that are the command's
 * still.  A pid may be another process's by now. */
#ifndef PERFJIT_RUN_PROCESSES_H
#define PERFJIT_RUN_PROCESSES_H

#include "injector/run/record/growing_recording.h"

#include <sys/types.h>

struct run_processes {
    pid_t *pids;
    size_t count, capacity;
};

/* Find in RECORDING those that COMMAND (0: it has ended) started, or that have the variable MARK,
 * "NAME=VALUE" of this run alone, in the environment that they were started with; but not COMMAND,
 * nor what has a session of its own.
 * Without memory some are missing.  Free with run_processes_free. */
void run_processes_find(struct run_processes *processes, const struct growing_recording *recording,
                        pid_t command, const char *mark);

/* Send SIGNAL_NUMBER to each. */
void run_processes_signal(const struct run_processes *processes, int signal_number);

bool run_processes_go_on(const struct run_processes *processes);

void run_processes_free(struct run_processes *processes);

#endif
