/* perfjit inject: the pipeline from a recording and its dumps to a profile that names JIT code. */
#ifndef PERFJIT_INJECT_H
#define PERFJIT_INJECT_H

/* Run the command with its own arguments; ARGV[0] is "perfjit inject".  Returns the exit status. */
int inject_command(int argc, char **argv);

#endif
