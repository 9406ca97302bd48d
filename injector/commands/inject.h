/* perfjit inject: options in, exit status out. */
#ifndef PERFJIT_INJECT_COMMAND_H
#define PERFJIT_INJECT_COMMAND_H

/* Run the command with its own arguments; ARGV[0] is "perfjit inject".  Returns the exit status. */
int inject_command(int argc, char **argv);

#endif
