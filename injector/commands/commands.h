/* The subcommands: options in, exit status out.  Each is in a file of its own.
 *
 * ARGV has the command's own arguments; ARGV[0] is "perfjit record" and the like. */
#ifndef PERFJIT_COMMANDS_H
#define PERFJIT_COMMANDS_H

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
int record_command(int argc, char **argv);
int report_command(int argc, char **argv);
int symbols_command(int argc, char **argv);

#endif
