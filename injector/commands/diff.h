/* perfjit diff: what got slower from one set of recordings to another, and whether that is noise.
 */
#ifndef PERFJIT_DIFF_H
#define PERFJIT_DIFF_H

/* Run the command with its own arguments; ARGV[0] is "perfjit diff".  Returns the exit status: 4 if
 * --fail-on says so. */
int diff_command(int argc, char **argv);

#endif
