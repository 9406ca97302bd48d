/* The agents, libraries that a runtime loads, which stand with this program:
 *
 *     LIBDIR/perfjit/NAME    where make install puts them: LIBDIR is beside BINDIR
 *     build/NAME             beside the program, in the tree that it was built in
 *
 * The variable PERFJIT_AGENTS names another folder.
 */
#ifndef PERFJIT_AGENT_FILE_H
#define PERFJIT_AGENT_FILE_H

#include <stdbool.h>

/* The path of the agent NAME, to be freed; NULL: there is none.  ROOT, or NULL, is the root
 * directory of who loads it: the path must lead to a file there, too.  FOR_OTHERS: another user
 * must be able to read it. */
char *agent_file_find(const char *name, const char *root, bool for_others);

#endif
