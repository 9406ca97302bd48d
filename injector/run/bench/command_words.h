/* The words of a command that was given as one text, as a shell would split it. */
#ifndef PERFJIT_COMMAND_WORDS_H
#define PERFJIT_COMMAND_WORDS_H

/* Split TEXT at white space, but for what is in quotes.  Where it has more in it than words (a
 * variable, a pipe, an assignment, a pattern, a second line), it is the shell's: the words are sh
 * -c TEXT. Returns the words, up to a NULL, to be freed with command_words_free; NULL without
 * memory. */
char **command_words(const char *text);

void command_words_free(char **words);

#endif
