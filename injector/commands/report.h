/* perfjit report: a recording as a table for people. */
#ifndef PERFJIT_REPORT_H
#define PERFJIT_REPORT_H

/* Run the command with its own arguments; ARGV[0] is "perfjit report".  Returns the exit status. */
int report_command(int argc, char **argv);

#endif
