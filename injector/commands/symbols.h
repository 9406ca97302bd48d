/* perfjit symbols: ELF files of the JIT code that is alive in a core or a running process. */
#ifndef PERFJIT_SYMBOLS_H
#define PERFJIT_SYMBOLS_H

/* Run the command with its own arguments; ARGV[0] is "perfjit symbols".  Returns the exit
 * status. */
int symbols_command(int argc, char **argv);

#endif
