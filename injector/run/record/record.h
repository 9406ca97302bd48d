/* perfjit record: from a command to a recording of it that names JIT code.
 *
 *     command ─▶ program ─▶ runtime ─▶ environment ─▶ recorder (perf) ─▶ NAME.recording
 */
#ifndef PERFJIT_RECORD_H
#define PERFJIT_RECORD_H

#include "injector/recording/host/event_choice.h"
#include "injector/run/program/program.h"
#include "injector/run/record/attached_processes.h"
#include "injector/run/record/kept_records.h"
#include "injector/run/record/record_options.h"
#include "injector/run/record/recorder.h"
#include "injector/run/record/run_folder.h"
#include "injector/run/record/runtime_environment.h"

#include <time.h>

/* Everything that one run makes, in the order in which it is made. */
struct record_run {
    const struct record_options *options;
    struct event_choice event;
    const char *switches; /* the event that samples switches of threads; NULL: none */
    struct program program;
    struct run_folder folder;
    struct runtime_environment environment;
    char *raw; /* NAME.recording, once it was made */
    uint64_t undo_raw, undo_left;
    struct attached_processes attached;
    struct growing_recording recording;
    struct recorder_end end;
    struct kept_records kept;
    struct timespec start;
    bool recorded;
};

/* Record as OPTIONS, which outlive RUN, say.  Its dumps are there until it is released.  Returns 0,
 * or -1 with the failure text set.  Release with record_run_release in either case. */
int record_run_go(struct record_run *run, const struct record_options *options,
                  struct findings *findings);

/* Remove the run's files; KEEPS: all but the recording and the dumps. */
void record_run_release(struct record_run *run, bool keeps);

/* Have undo_list.h remove what a run's processes left, and end the requests to those of -p. */
void record_run_learn_undo(void);

/* Record, and write the recording that names JIT code.  Returns the exit status. */
int record_and_inject(const struct record_options *options);

#endif
