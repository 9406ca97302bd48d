/* Whether a command's program can write where it starts, as the user that its wrappers make it. */
#ifndef PERFJIT_START_PLACE_H
#define PERFJIT_START_PLACE_H

#include "injector/run/program/wrapper.h"

/* Try whether the program of COMMAND can make files in DIRECTORY, or (NULL) in the one where it
 * starts.  Returns 0, or the error number: EPERM also if this process can't try it as that user. */
int start_place_error(const struct wrapped_command *command, const char *directory);

#endif
