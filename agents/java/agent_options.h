/* The agent's options, words with commas between them: -agentpath:libperfjit-java.so=short,dir=/tmp
 *
 *     attach      no dump until one is asked for (perfjit attach)
 *     dir=DIR     the dump's directory
 *     short       names without types and packages: HashMap.hash
 *     nolines     neither lines nor inlined calls
 *     noframes    no unwind tables
 *     nointerpreted  no names for the interpreter's frames
 */
#ifndef PERFJIT_AGENT_OPTIONS_H
#define PERFJIT_AGENT_OPTIONS_H

#include <stdbool.h>

struct agent_options {
    bool attach, short_names, no_lines, no_frames, no_interpreted;
    char *dir; /* owned, or NULL */
};

/* TEXT may be NULL.  Returns NULL, or the word that is no option, which points into TEXT. */
const char *agent_options_read(struct agent_options *options, const char *text);

void agent_options_free(struct agent_options *options);

#endif
