/* perfjit record: from a command to a recording of it that names JIT code. */
#ifndef PERFJIT_RECORD_H
#define PERFJIT_RECORD_H

/* Run the command with its own arguments; ARGV[0] is "perfjit record".  Returns the exit status. */
int record_command(int argc, char **argv);

#endif
