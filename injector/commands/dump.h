/* perfjit dump: a jitdump file, record by record, for debugging a JIT. */
#ifndef PERFJIT_DUMP_H
#define PERFJIT_DUMP_H

/* Run the command with its own arguments; ARGV[0] is "perfjit dump".  Returns the exit status. */
int dump_command(int argc, char **argv);

#endif
