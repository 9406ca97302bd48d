/* perfjit flamegraph: a recording as a page that shows all its stacks. */
#ifndef PERFJIT_FLAMEGRAPH_H
#define PERFJIT_FLAMEGRAPH_H

/* Run the command with its own arguments; ARGV[0] is "perfjit flamegraph".  Returns the exit
 * status. */
int flamegraph_command(int argc, char **argv);

#endif
