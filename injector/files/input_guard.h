/* The files that a command is going to replace: none of them may be one that it reads.  A recording
 * can't be made again.  Files are compared by inode: a name can be a hard link, a symbolic link or
 * /proc/self/fd/3.
 *
 * A command guards its outputs before it reads.  All that opens an input tells it here. */
#ifndef PERFJIT_INPUT_GUARD_H
#define PERFJIT_INPUT_GUARD_H

#include "injector/findings/findings.h"

#include <stdbool.h>
#include <sys/stat.h>

/* PATH will be replaced, if a file is there now.  NULL and "-" are no files. */
void input_guard_output(const char *path);

/* Whether any of the outputs is there: only then inputs matter. */
bool input_guard_is_needed(void);

/* The file with STATUS is an input. */
void input_guard_input(const struct stat *status);

/* The same for the file at PATH, which need not exist. */
void input_guard_input_at(const char *path);

/* Whether no output was an input until now.  Returns 0, or -1 with the failure text set, as wrong
 * usage. */
int input_guard_check(struct findings *findings);

#endif
