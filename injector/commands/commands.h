/* The subcommands: options in, exit status out.  Each is in a file of its own; the table of all is
 * what the command, its help, the manual pages and the completions are made from.
 *
 * ARGV has the command's own arguments; ARGV[0] is "perfjit record" and the like. */
#ifndef PERFJIT_COMMANDS_H
#define PERFJIT_COMMANDS_H

#include <argp.h>
#include <stddef.h>

/* What a command's arguments are, beside its options. */
enum command_arguments {
    TAKES_NOTHING,
    TAKES_RECORDING, /* of any name, as a core has */
    TAKES_DUMP,
    TAKES_PID,
    TAKES_PROGRAM /* with its own arguments */
};

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const struct argp *argp;
    enum command_arguments arguments;
    const char *purpose; /* a sentence without its full stop */
};

/* Inject's options are with the pipeline: inject_options.h. */
extern const struct argp record_argp, attach_argp, detach_argp, bench_argp, report_argp,
    flamegraph_argp, export_argp, diff_argp, move_argp, check_argp, dump_argp, bt_argp,
    symbols_argp, gdb_argp, lldb_argp;

int attach_command(int argc, char **argv);
int bench_command(int argc, char **argv);
int bt_command(int argc, char **argv);
int check_command(int argc, char **argv);
int detach_command(int argc, char **argv);
int diff_command(int argc, char **argv);
int dump_command(int argc, char **argv);
int export_command(int argc, char **argv);
int flamegraph_command(int argc, char **argv);
int gdb_command(int argc, char **argv);
int inject_command(int argc, char **argv);
int lldb_command(int argc, char **argv);
int move_command(int argc, char **argv);
int record_command(int argc, char **argv);
int report_command(int argc, char **argv);
int symbols_command(int argc, char **argv);

/* The last one has no name. */
extern const struct command commands[];

/* Print the manual page of a command, or the completions of a shell: not in the table, as it is for
 * who builds or installs the command. */
int manual_command(int argc, char **argv);

#endif
