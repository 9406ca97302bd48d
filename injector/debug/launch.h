/* The common part of perfjit gdb and perfjit lldb: from the command line to the files with which
 * the debugger is started. */
#ifndef PERFJIT_LAUNCH_H
#define PERFJIT_LAUNCH_H

#include "injector/debug/debugger_files.h"
#include "injector/debug/snapshot_code.h"

#include <argp.h>

struct launch_request {
    struct snapshot_request snapshot;
    const char *program;
    char **rest; /* the debugger's own arguments, up to a NULL; or NULL */
};

/* Write the rest of FILES, for TABLE, and run the debugger.  Returns 0, with its *STATUS, or -1
 * with the failure text set. */
typedef int launch_debugger(const struct launch_request *request,
                            const struct debugger_files *files, const struct code_table *table,
                            int *status, struct findings *findings);

/* Its options and their parser, and for struct argp all but the description before "\v". */
extern const struct argp_option launch_options[];
error_t launch_option_take(int key, char *argument, struct argp_state *state);
#define LAUNCH_ARGS_DOC "[PROGRAM] CORE [-- ARGUMENT...]\n-p PID [PROGRAM] [-- ARGUMENT...]"
#define LAUNCH_DOC(DEBUGGER)                                                                       \
    "\v" SNAPSHOT_DOC "Exit status:\n"                                                             \
    "  1  " DEBUGGER " could not be started, or there is no dump\n"                                \
    "  2  wrong usage\n"                                                                           \
    "\nElse the status is " DEBUGGER "'s."

/* The command that begins with the arguments ARGV, as ARGP has them, and ends with START. Returns
 * the exit status. */
int launch_command(int argc, char **argv, const struct argp *argp, launch_debugger *start);

/* The program that was named, or that the process of SNAPSHOT, a core, ran; NULL: the debugger
 * finds out. */
const char *launch_program(const struct launch_request *request, const struct snapshot *snapshot);

#endif
