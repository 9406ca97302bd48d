/* Both runs of a pair at the same time, on one processor.
 *
 * A machine that others use as well changes its speed from one second to the next, so that runs one
 * after the other differ by percents.  Two programs on one processor take turns of milliseconds.
 * Disturbances meet both alike, and their CPU times differ only by their own work. */
#ifndef PERFJIT_BENCH_TOGETHER_H
#define PERFJIT_BENCH_TOGETHER_H

#include "injector/compare/kept_runs/bench_list.h"
#include "injector/run/bench/bench_run.h"

struct bench_partner {
    struct bench_command command;
    uint64_t numbers[RUN_NUMBERS]; /* as bench_run_go fills them in */
    struct bench_leftover leftover;
};

/* Run both, each in a process of its own that starts it when the other one can start, too.  Returns
 * 0, or -1 with the failure text set. */
int bench_together_go(struct bench_partner partners[BENCH_SIDES], struct findings *findings);

#endif
