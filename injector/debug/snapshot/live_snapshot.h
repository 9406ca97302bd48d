/* A snapshot of a running process: /proc/PID/maps, and its threads' registers and stacks.  All
 * threads are stopped while these are read: milliseconds. */
#ifndef PERFJIT_LIVE_SNAPSHOT_H
#define PERFJIT_LIVE_SNAPSHOT_H

#include "injector/debug/snapshot/snapshot.h"

/* Take that of process PID.  Without STACKS only the mappings are read, and the threads are not
 * stopped.  *TAKEN_NS: when, on CLOCK_MONOTONIC.  Returns 0, or -1 with the failure text set.
 * Release with snapshot_free in either case.  SNAPSHOT->path is PATH, which must outlive it.
 * MACHINE is machine_here. */
int live_snapshot_take(struct snapshot *snapshot, const char *path, uint32_t pid,
                       const struct machine *machine, bool stacks, uint64_t *taken_ns,
                       struct findings *findings);

#endif
