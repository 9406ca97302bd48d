/* Commands that run another one, whose words come behind their own:
 *
 *     env -u NODE_OPTIONS A=1 node app.js
 *     timeout -k 5 60 nice -n 5 node app.js
 */
#ifndef PERFJIT_WRAPPER_H
#define PERFJIT_WRAPPER_H

#include <stdbool.h>
#include <stddef.h>

/* Facts about a command's words. */
struct wrapped_command {
    /* The index of the program that the wrappers start; 0: the first word is no known wrapper, or
     * it takes unknown words. */
    size_t at;
    /* The words of the last wrapper that may take variables away (env or sudo).  The first member
     * is where its assignments (NAME=VALUE) begin.  The second is where more assignments must be
     * added for the program.  0: the program gets all variables. */
    size_t assignments, behind_assignments;
    /* As whom and where the program starts, in the words' own terms; NULL: as this process does.
     * Of su, too, which is no wrapper here. */
    const char *user, *group, *directory, *root;
    bool with_groups; /* all those of the user */
};

/* Find these facts for WORDS, up to a NULL. */
struct wrapped_command wrapped_command_of(char *const *words);

#endif
