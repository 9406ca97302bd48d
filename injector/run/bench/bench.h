/* perfjit bench: two commands in turns, and a small profile of each of their runs. */
#ifndef PERFJIT_BENCH_H
#define PERFJIT_BENCH_H

/* Run the command with its own arguments; ARGV[0] is "perfjit bench".  Returns the exit status. */
int bench_command(int argc, char **argv);

#endif
