/* The environment and the words that a command is started with, so that its runtime logs: the
 * user's own, and the runtime's switches. */
#ifndef PERFJIT_RUNTIME_ENVIRONMENT_H
#define PERFJIT_RUNTIME_ENVIRONMENT_H

#include "injector/run/program/program.h"
#include "injector/run/record/run_folder.h"

struct runtime_environment {
    char **variables; /* up to a NULL; all owned */
    size_t variable_count;
    char **words;                   /* of the command; all owned */
    struct wrapped_command command; /* of these */
    char *told;                     /* the settings, for a person: "NODE_OPTIONS=--perf-prof ..." */
    const struct run_folder *folder;
    char *agent;        /* the runtime's, which it can load: owned; or NULL */
    size_t front_bytes; /* of the words that stand in front of the user's own */
    bool copies_stacks;
    bool tells_deopts; /* the runtime is to */
    bool no_memory;
};

/* Begin with the variables of this process, and the WORDS of the command (up to a NULL, which
 * outlive ENVIRONMENT).  Every program that links libjitdump, or LLVM's listener, gets its
 * directory.  Returns 0, or -1 without memory.  Release with runtime_environment_free in either
 * case. */
int runtime_environment_begin(struct runtime_environment *environment, char **words,
                              const struct run_folder *folder, bool copies_stacks);

/* Add RUNTIME's switches, and append them to the text for the user.  Returns 0 or -1 as above. */
int runtime_environment_add(struct runtime_environment *environment, const struct runtime *runtime);

/* Set the variable NAME to VALUE; and insert a word behind the program's name, with the folder's
 * places in it, unless the user gives the option.  Neither is in the text for the user.  Return 0
 * or -1 as above. */
int runtime_environment_set(struct runtime_environment *environment, const char *name,
                            const char *value);
int runtime_environment_argument(struct runtime_environment *environment, const char *text);

/* TEXT with the folder's places in it, to be freed; NULL without memory. */
char *runtime_environment_text(const struct runtime_environment *environment, const char *text);

/* Let the command have the variables that were set, where a wrapper takes its own away: they become
 * its words.  Returns 0 or -1 as above. */
int runtime_environment_wrap(struct runtime_environment *environment);

/* The value of the variable NAME; NULL: it is not set. */
const char *runtime_environment_value(const struct runtime_environment *environment,
                                      const char *name);

/* The value that the program finds so far, where the command's words may set NAME or take variables
 * away; NULL: it is not set, or the words leave it open. */
const char *runtime_environment_found(const struct runtime_environment *environment,
                                      const char *name);

void runtime_environment_free(struct runtime_environment *environment);

#endif
