/* perf record beside a command, or a process that runs already, from before its first instruction
 * to its end.
 *
 * The command is a child of perfjit.  It waits at a gate until perf, which was attached to it, says
 * that it records.  So the command's own exit status is known, and no sample of its start is
 * missing.  A signal from the terminal does not end perf before perf has written its data. */
#ifndef PERFJIT_RECORDER_H
#define PERFJIT_RECORDER_H

#include "injector/findings/findings.h"
#include "injector/run/record/growing_recording.h"

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

/* The processor time of all processors of the machine so far, used by all processes. */
struct processor_use {
    uint64_t time_ns;   /* when, on CLOCK_MONOTONIC */
    uint64_t busy_ns;   /* in steps of a tick */
    uint64_t stolen_ns; /* that a virtual machine wanted, and its host gave to others */
};

/* All but the time is 0 where /proc/stat can't be read. */
struct processor_use processor_use_now(void);

struct recorder_request {
    const char *perf;         /* the program */
    const char *event;        /* as its -e takes it */
    const char *hz;           /* as its -F does */
    const char *stacks;       /* as its --call-graph does; NULL: none */
    const char *switches;     /* an event that samples switches of threads; NULL: none */
    bool has_switches;        /* they are recorded, with it or without */
    const char *output;       /* where it writes */
    const char *messages;     /* the file for its output */
    const char *const *words; /* the command, up to a NULL; or NULL */
    const char *program;      /* the file of it */
    char *const *variables;   /* its environment, up to a NULL */
    const char *pids;         /* without a command: these processes, as its -p takes them */
    double seconds;           /* to record at most; 0: to the end */
    int processor;            /* the only one that the command may use; -1: any */
    int ready, go;            /* pipes: a byte says on the one when the command could start, and it
                                 starts when one comes on the other; -1: at once */
    bool shows_progress;
};

/* How a recording ended. */
struct recorder_end {
    bool interrupted; /* by a signal to perfjit */
    int signal;       /* the signal that ends the run, also one after the command's end; or 0 */
    bool perf_failed; /* not because this program ended it */
    bool perf_failed_late; /* then: when it was to end */
    bool still_runs;       /* the command, which is process COMMAND */
    pid_t command;
    int status;      /* the command's, as waitpid(2) tells it */
    uint64_t cpu_ns; /* that it and those of its children used that it waited for */
    struct processor_use before, after; /* the command; zeros: it still runs */
    char *perf_said; /* owned: perf's own words, or what ended it; NULL: nothing */
};

/* From now on SIGQUIT (Ctrl-\) is the command's alone, because it makes a Java VM print a thread
 * dump: this program stays.  One that was sent to this program is passed on while the command runs;
 * without a command it ends the recording, as SIGINT does. */
void recorder_leave_quit(void);

/* The signals that end a run, without those that were ignored when it began, as with nohup; and
 * SIGQUIT. */
void recorder_ending_signals(sigset_t *signals);

/* How perf failed, for a message: "perf record ended before the command did". */
const char *recorder_failure(const struct recorder_end *end);

/* Record.  RECORDING, which has begun with the output's path, is read to its end.  Returns 0, or -1
 * with the failure text set: nothing was recorded, and the command was not started.  Free
 * END->perf_said in either case. */
int recorder_run(const struct recorder_request *request, struct growing_recording *recording,
                 struct recorder_end *end, struct findings *findings);

#endif
