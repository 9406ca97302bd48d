/* The program of a command: the file that its name leads to, and that file's runtime. */
#ifndef PERFJIT_PROGRAM_H
#define PERFJIT_PROGRAM_H

#include "injector/findings/findings.h"
#include "injector/run/program/runtime.h"
#include "injector/run/program/wrapper.h"

#include <sys/types.h>

struct program {
    char *path;                    /* owned */
    const struct runtime *runtime; /* NULL: none that is known; it may start any */
    bool embeds_runtime;           /* it has another purpose, and may start any, too */
    char *interpreter;             /* of a script: owned; or NULL */
    struct wrapped_command command;
    char *wrapped;      /* the program that a wrapper runs: owned; or NULL */
    bool copies_stacks; /* it is none that is known, and its words name one that wants that */
};

/* Find the program of the command NAME as execvp(3) does, and its runtime.  The runtime is
 * recognized by the program's name, by its links, by the first line of a script, or by the
 * libraries that it needs.  Returns 0, or -1 with the failure text set.  Release with program_free
 * in either case. */
int program_find(struct program *program, const char *name, struct findings *findings);

/* The same for a command, WORDS up to a NULL.  If the first word is a wrapper, PROGRAM has the
 * wrapper's path, and the runtime of the wrapped program. */
int program_find_command(struct program *program, char *const *words, struct findings *findings);

/* The first program NAME in the directories PLACES, as PATH has them, below ROOT or NULL; to be
 * freed; NULL: there is none.  With AT, which is where its directory stands in PLACES, relative
 * ones don't count: they are other directories elsewhere. */
char *program_in_places(const char *places, const char *name, const char *root, size_t *at);

/* The file of PROGRAM whose name is one of RUNTIME's names: the interpreter, the wrapped program,
 * or the program itself.  NULL: none is. */
const char *program_called(const struct program *program, const struct runtime *runtime);

/* The runtime that process PID is, by its program, or by a library in its memory; or NULL. */
const struct runtime *program_of_process(pid_t pid);

/* Whether IS_IT says so of a file that process PID has mapped. */
bool program_has_mapped(pid_t pid, bool (*is_it)(const char *path, void *context), void *context);

void program_free(struct program *program);

#endif
