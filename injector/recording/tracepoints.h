/* Tracepoints among a recording's events, and whether a perf command counts them per thread. */
#ifndef PERFJIT_TRACEPOINTS_H
#define PERFJIT_TRACEPOINTS_H

#include "injector/recording/perf_data/perf_file.h"

/* Whether some event of FILE is a tracepoint that perf trace, sched, lock or kvm may count with
 * perf's thread: by the names in feature EVENT_DESC.  True of a tracepoint without such a name. */
bool tracepoints_are_counted(const struct perf_file *file);

#endif
