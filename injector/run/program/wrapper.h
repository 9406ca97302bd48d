/* Commands that run another one, whose words come behind their own:
 *
 *     env -u NODE_OPTIONS A=1 node app.js
 *     timeout -k 5 60 nice -n 5 node app.js
 */
#ifndef PERFJIT_WRAPPER_H
#define PERFJIT_WRAPPER_H

#include <stdbool.h>
#include <stddef.h>

/* What is known of a command's words. */
struct wrapped_command {
    /* Where the program stands that they are about; 0: the first is no wrapper that is known, or
     * what it takes is not. */
    size_t at;
    /* Where assignments (NAME=VALUE) begin among the words of the last wrapper that may take
     * variables away, which are env and sudo, and where more of them have to stand so that the
     * program gets them.  0: it gets all there are. */
    size_t assignments, behind_assignments;
    /* As whom and where the program starts, in the words' own terms; NULL: as this process does.
     * Of su, too, which is no wrapper here. */
    const char *user, *group, *directory, *root;
    bool with_groups; /* all those of the user */
};

/* Of WORDS, up to a NULL. */
struct wrapped_command wrapped_command_of(char *const *words);

#endif
