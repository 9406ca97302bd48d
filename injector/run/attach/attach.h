/* perfjit attach and perfjit detach: have a running process begin, or end, to log its JIT code. */
#ifndef PERFJIT_ATTACH_H
#define PERFJIT_ATTACH_H

/* Run the command with its own arguments; ARGV[0] is "perfjit attach".  Returns the exit status. */
int attach_command(int argc, char **argv);
int detach_command(int argc, char **argv);

#endif
