/* A dump that a recording does not name, but that lies where runtimes leave theirs. */
#ifndef PERFJIT_DUMP_NEARBY_H
#define PERFJIT_DUMP_NEARBY_H

#include <stdbool.h>
#include <stdint.h>

/* Whether jit-PID.dump is a regular file beside the recording PROFILE, in the current directory, in
 * $JITDUMPDIR, or in /tmp. */
bool dump_is_nearby(const char *profile, uint32_t pid);

#endif
