/* The settings by which each runtime logs its JIT code, for one run.  They are variables of its
 * environment, which its children and workers have too, or words behind its name. */
#ifndef PERFJIT_RUNTIME_H
#define PERFJIT_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

enum switch_kind {
    SWITCH_NONE,     /* the end of a list */
    SWITCH_SET,      /* a variable's value */
    SWITCH_APPEND,   /* a word more in a variable, behind the user's own */
    SWITCH_PREPEND,  /* the same in front of them; for one variable alone */
    SWITCH_AROUND,   /* TEXT has the user's own value where '*' stands */
    SWITCH_ARGUMENT, /* a word behind the program's name */
};

/* In TEXT %d is the directory for dumps, %c that of files for this run, and %a the agent: without
 * one the switch is left out. */
struct runtime_switch {
    enum switch_kind kind;
    const char *variable; /* NULL: an argument */
    const char *text;
    char separator;   /* between the user's words and this one */
    bool only_stacks; /* where stacks are copied: unwind tables are worth their price then */
    bool only_quiet;  /* not for a program that may start others: it could be heard */
};

/* A file that a runtime reads, made for this run in %c. */
struct runtime_file {
    const char *name; /* with a directory before it */
    const char *text;
};

enum {
    RUNTIME_SWITCHES_MOST = 9,
    RUNTIME_FILES_MOST = 3,
    RUNTIME_NAMES_MOST = 12,
    RUNTIME_ALONE_MOST = 4
};

struct runtime {
    const char *name;                          /* as --runtime takes it */
    const char *programs[RUNTIME_NAMES_MOST];  /* a version may follow: python3.13, php8.2 */
    const char *libraries[RUNTIME_NAMES_MOST]; /* names that begin so: of a program that embeds
                                                * it */
    struct runtime_switch switches[RUNTIME_SWITCHES_MOST];
    struct runtime_file files[RUNTIME_FILES_MOST];
    bool copies_stacks; /* without being asked for: frame pointers would not lead to its code */
    bool writes_here;   /* it writes to the directory where it runs; where it can't, it prints */
    const char *agent;  /* a library that it loads (agent_file.h); or NULL */
    bool writes_map_on_request;      /* java_map.h */
    const struct runtime *elsewhere; /* with switches of the program itself for that; or NULL */
    const char *alone_programs[RUNTIME_ALONE_MOST]; /* that take these words as arguments alone: */
    const char *alone_words[RUNTIME_ALONE_MOST];
    /* More of them, or of its first variable, by which it tells why it gave code up. */
    const char *deopt_words[RUNTIME_ALONE_MOST];
    const char *differs;    /* how that changes what runs, in a sentence; or NULL: hardly */
    const char *needs;      /* what it must be for that; or NULL */
    const char *instead_if; /* the beginning of a word of the command's, or of its variable */
    const struct runtime *instead; /* its switches are set then; or NULL */
    const char *try_first; /* an argument that must be known; else the switches would end it */
    const struct runtime *otherwise; /* with switches that each version takes; or NULL */
};

/* All of them, up to one without a name. */
extern const struct runtime runtimes[];

/* The one of that NAME; NULL if there is none. */
const struct runtime *runtime_named(const char *name);

/* The one whose program is called BASENAME, with or without a version; or NULL. */
const struct runtime *runtime_of_program(const char *basename);

/* The one that the shared library NAME belongs to; or NULL. */
const struct runtime *runtime_of_library(const char *name);

/* The settings for a program that only starts RUNTIME, as a shell does.  The result is RUNTIME or a
 * variant.  Its switches are all in the environment, each version takes them, and they don't
 * disturb other programs.  NULL: nothing can. */
const struct runtime *runtime_inherited(const struct runtime *runtime);

#endif
