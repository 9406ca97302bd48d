/* The table of all commands: see commands.h. */
#include "injector/commands/commands.h"

#include "injector/inject/inject_options.h"

const struct command commands[] = {
    {"record", record_command, &record_argp, TAKES_PROGRAM,
     "run a command with JIT logging on, and record it with perf"},
    {"attach", attach_command, &attach_argp, TAKES_PID,
     "make a running process log its JIT code, live code first"},
    {"detach", detach_command, &detach_argp, TAKES_PID,
     "make a running process close that dump again"},
    {"bench", bench_command, &bench_argp, TAKES_NOTHING,
     "run two commands in turns, and keep a profile of each run"},
    {"report", report_command, &report_argp, TAKES_RECORDING,
     "show where the time of a recording went"},
    {"flamegraph", flamegraph_command, &flamegraph_argp, TAKES_RECORDING,
     "draw a recording: a page that opens in any browser"},
    {"export", export_command, &export_argp, TAKES_RECORDING,
     "write a recording for flamegraph.pl, pprof, speedscope, ..."},
    {"diff", diff_command, &diff_argp, TAKES_RECORDING,
     "say what got slower between two sets of runs, or is noise"},
    {"inject", inject_command, &inject_argp, TAKES_RECORDING,
     "rewrite a recording so that perf report names JIT code"},
    {"move", move_command, &move_argp, TAKES_RECORDING,
     "move a recording with its ELF files, so that perf finds them"},
    {"check", check_command, &check_argp, TAKES_RECORDING,
     "say what is wrong with a recording or a dump, and what to do"},
    {"dump", dump_command, &dump_argp, TAKES_DUMP, "print a jitdump file, record by record"},
    {"bt", bt_command, &bt_argp, TAKES_RECORDING,
     "print the stacks of a core or a process, with JIT code named"},
    {"symbols", symbols_command, &symbols_argp, TAKES_RECORDING,
     "write ELF files of the live code in a core or a process"},
    {"gdb", gdb_command, &gdb_argp, TAKES_RECORDING,
     "start gdb on a core or a process, with JIT code in its stacks"},
    {"lldb", lldb_command, &lldb_argp, TAKES_RECORDING,
     "start lldb on a core or a process, with JIT code in its stacks"},
    {.name = NULL}};
