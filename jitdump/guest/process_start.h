/* When this process began: an exec is no beginning. */
#ifndef JITDUMP_PROCESS_START_H
#define JITDUMP_PROCESS_START_H

#include <stdbool.h>
#include <stdint.h>

/* *MONOTONIC_NS by CLOCK_MONOTONIC, up to a tick too early.  Returns false where /proc does not
 * say. */
bool jd_process_start(uint64_t *monotonic_ns);

#endif
