/* perfjit lldb: lldb on a core or a running process, with its JIT code. */
#ifndef PERFJIT_LLDB_H
#define PERFJIT_LLDB_H

/* Run the command with its own arguments; ARGV[0] is "perfjit lldb".  Returns the exit status. */
int lldb_command(int argc, char **argv);

#endif
