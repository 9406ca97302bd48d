/* perfjit export: a recording in the format of another tool. */
#ifndef PERFJIT_EXPORT_H
#define PERFJIT_EXPORT_H

/* Run the command with its own arguments; ARGV[0] is "perfjit export".  Returns the exit status. */
int export_command(int argc, char **argv);

#endif
