/* One run of a command: recorded, and the part of it that is kept. */
#ifndef PERFJIT_BENCH_RUN_H
#define PERFJIT_BENCH_RUN_H

#include "injector/compare/kept_runs/bench_list.h"
#include "injector/run/record/record_options.h"

/* How to run. */
struct bench_command {
    struct record_options record; /* its name, a path, is that of a file that is there meanwhile */
    const char *place;            /* the run's name in messages: "base, run 3" */
    const char *kept;             /* where its profile goes; NULL: nowhere */
};

/* Processes that the command started and that go on behind its end: how many, and one of them. */
struct bench_leftover {
    size_t count;
    uint32_t pid;
};

/* Run it, and fill in NUMBERS, but for the turn, and LEFTOVER.  Returns 0, or -1 with the failure
 * text set, as when the command failed. */
int bench_run_go(uint64_t numbers[RUN_NUMBERS], struct bench_leftover *leftover,
                 const struct bench_command *command, struct findings *findings);

#endif
