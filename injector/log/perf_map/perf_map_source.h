/* Perf maps as a source of code: names in a process's map that no dump of it has become functions
 * of its code log.
 *
 * A perf map says "these addresses are that function", without a time and without bytes.  Its
 * functions are live from the moment at which the process's executable memory was first mapped
 * there:
 *
 *     profile   //anon [10, 30)   //anon [10, 50)   lib.so [60, 90), with a symbol [60, 72)
 *     map       12-20 f  22-28 g  28-35 h           62-70 i                 75-80 j
 *     becomes   f, g              h                 nothing: perf names it  j
 *
 * The readers of a dump's functions (timeline, images) treat these alike.
 */
#ifndef PERFJIT_PERF_MAP_SOURCE_H
#define PERFJIT_PERF_MAP_SOURCE_H

#include "injector/log/code/jit_process.h"
#include "injector/recording/given_file.h"

struct perf_map_options {
    bool only_given;                /* only those given */
    const struct given_file *given; /* without a PID named perf-<pid>.map */
    size_t given_count;
    const char *root; /* the recorded processes' root directory, or NULL */
};

/* Find and read the maps of the processes in PROFILE that have executable memory.  Add the
 * functions in them to PROCESSES, whose dumps have been read.  Returns 0, or -1 with the failure
 * text set. */
int perf_maps_read(struct jit_processes *processes, const struct records *records,
                   const struct perf_map_options *options, struct findings *findings);

#endif
