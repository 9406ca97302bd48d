/* perfjit gdb: gdb on a core or a running process, with its JIT code. */
#ifndef PERFJIT_GDB_H
#define PERFJIT_GDB_H

/* Run the command with its own arguments; ARGV[0] is "perfjit gdb".  Returns the exit status. */
int gdb_command(int argc, char **argv);

#endif
