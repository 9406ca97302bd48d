/* The base of a bench that comes from an earlier one. */
#ifndef PERFJIT_BASE_RUNS_H
#define PERFJIT_BASE_RUNS_H

#include "injector/compare/kept_runs/bench_list.h"

/* Add the runs and facts of the last side of the bench DIRECTORY to LIST as its base; their files,
 * which are read to the end, go to FOLDER.  Returns 0, or -1 with the failure text set. */
int base_runs_take(struct bench_list *list, const char *folder, const char *directory,
                   struct findings *findings);

#endif
