/* The command line of another program, and running it in the foreground. */
#ifndef PERFJIT_COMMAND_LINE_H
#define PERFJIT_COMMAND_LINE_H

#include "injector/findings/findings.h"

#include <stdbool.h>
#include <stddef.h>

/* Words up to a NULL; each must outlive the line. */
struct command_line {
    char **items;
    size_t count;
    bool failed; /* memory was missing */
};

void command_line_add(struct command_line *line, const char *word);

/* Add OPTION and VALUE; nothing if VALUE is NULL. */
void command_line_add_option(struct command_line *line, const char *option, const char *value);

/* Run it with the terminal as its input, and wait for it.  Returns 0 and sets its exit *STATUS, or
 * returns -1 if it could not be started.  *IS_MISSING is then set if there is no such program.  In
 * that case the failure text is not set, otherwise it is. */
int command_line_run(const struct command_line *line, int *status, bool *is_missing,
                     struct findings *findings);

#endif
