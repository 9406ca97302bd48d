/* perfjit bt: the stacks of all threads of a core or a running process, with JIT code in them. */
#ifndef PERFJIT_BT_H
#define PERFJIT_BT_H

/* Run the command with its own arguments; ARGV[0] is "perfjit bt".  Returns the exit status. */
int bt_command(int argc, char **argv);

#endif
