/* A word for a command that a message advises, to be copied into a shell. */
#ifndef PERFJIT_SHELL_WORD_H
#define PERFJIT_SHELL_WORD_H

#include <limits.h>

enum { SHELL_WORD_BYTES = 2 * PATH_MAX };

/* The file PATH as a shell and a command take it: in quotes if it needs them, and no option.  It is
 * in TEXT, or is PATH itself: if it can stay as it is, or is too long. */
const char *shell_word(char text[SHELL_WORD_BYTES], const char *path);

#endif
