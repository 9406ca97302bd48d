/* perfjit check: what is wrong with a recording or a dump, why JIT code stays [unknown], and what
 * to do. */
#ifndef PERFJIT_CHECK_H
#define PERFJIT_CHECK_H

/* Run the command with its own arguments; ARGV[0] is "perfjit check".  Returns the exit status. */
int check_command(int argc, char **argv);

#endif
