/* What a command is: the file that its name leads to, and the runtime that this file is. */
#ifndef PERFJIT_PROGRAM_H
#define PERFJIT_PROGRAM_H

#include "injector/findings/findings.h"
#include "injector/run/program/runtime.h"
#include "injector/run/program/wrapper.h"

#include <sys/types.h>

struct program {
    char *path;                    /* owned */
    const struct runtime *runtime; /* NULL: none that is known; it may start any */
    char *interpreter;             /* of a script: owned; or NULL */
    struct wrapped_command command;
    char *wrapped;      /* what a wrapper runs: owned; or NULL */
    bool copies_stacks; /* it is none that is known, and its words name one that wants that */
};

/* Find the program of the command NAME as execvp(3) does, and see what it is: by its name, by what
 * its links lead to, by the first line of a script, by the libraries that it needs.  Returns 0, or
 * -1 with the failure text set.  Release with program_free in either case. */
int program_find(struct program *program, const char *name, struct findings *findings);

/* The same of a command, WORDS up to a NULL: where the first is a wrapper, its path, and the
 * runtime of what it runs. */
int program_find_command(struct program *program, char *const *words, struct findings *findings);

/* Which of PROGRAM's files is called as those of RUNTIME are: the interpreter, what is wrapped, or
 * the program itself.  NULL: none is. */
const char *program_called(const struct program *program, const struct runtime *runtime);

/* The runtime that process PID is, by its program, or by a library in its memory; or NULL. */
const struct runtime *program_of_process(pid_t pid);

void program_free(struct program *program);

#endif
