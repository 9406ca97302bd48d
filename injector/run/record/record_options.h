/* How a command or a process is to be recorded. */
#ifndef PERFJIT_RECORD_OPTIONS_H
#define PERFJIT_RECORD_OPTIONS_H

#include "injector/run/program/runtime.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
    RECORD_STACKS_BYTES = 16384, /* that are copied, of those that are */
    RECORD_PIDS_MOST = 1024
};

struct record_options {
    const char *hz;    /* as perf's -F takes it */
    const char *event; /* NULL: to be chosen */
    const char *name;
    const char *perf;
    const char *stacks;   /* as perf's --call-graph takes it; "": to be chosen; NULL: none */
    char stacks_text[32]; /* room for that */
    const struct runtime *runtime; /* NULL: to be found out */
    bool no_runtime;
    pid_t pids[RECORD_PIDS_MOST]; /* that run already */
    size_t pid_count;
    const char *pid_text; /* as perf's -p takes them; NULL: there is a command */
    double seconds;
    bool passes_status, keeps, quiet, verbose, off_cpu, deopts;
    char **words;             /* the command, up to a NULL; or NULL */
    int processor, ready, go; /* see recorder.h */
};

#endif
