/* From a profile to its processes that have JIT code:
 *
 *     lives -> dumps claimed -> logs -> perf maps -> children that inherit
 */
#ifndef PERFJIT_PROCESS_READING_H
#define PERFJIT_PROCESS_READING_H

#include "injector/log/code/jit_process.h"
#include "injector/log/perf_map/perf_map_source.h"

/* PROCESSES holds nothing yet but no_lines.
 *
 * Find the dumps that PROFILE names, and those in EXTRA (EXTRA_COUNT paths given by hand), and the
 * processes' perf maps as PERF_MAPS says, read them, and collect what PROFILE knows of their
 * processes.  ROOT is NULL or where their root file system is; ANY_OWNER: also dumps that belong to
 * other users.  Returns 0, or -1 with the failure text set: there is no dump and no map, or none
 * that can be used.  Release with jit_processes_free in either case. */
int jit_processes_read(struct jit_processes *processes, const struct records *records,
                       char *const *extra, size_t extra_count,
                       const struct perf_map_options *perf_maps, const char *root, bool any_owner,
                       struct findings *findings);

#endif
