/* The code logs of V8 that are given, and the processes whose code is in them.
 *
 * An isolate has a log of its own, and a process several: FILE or DIR, whose logs are all read.
 * Which process a log is of shows in its addresses. */
#ifndef PERFJIT_V8_LOG_SOURCE_H
#define PERFJIT_V8_LOG_SOURCE_H

#include "injector/log/code/jit_process.h"
#include "injector/recording/given_file.h"

struct v8_log_options {
    const struct given_file *files;
    size_t count;
    const char *root; /* below which scripts are, or NULL */
};

/* Give the functions of PROCESSES the inlined calls of the logs.  Returns 0, or -1 with the failure
 * text set. */
int v8_logs_read(struct jit_processes *processes, const struct v8_log_options *options,
                 struct findings *findings);

#endif
