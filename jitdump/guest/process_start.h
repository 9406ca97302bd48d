/* When this process started; exec does not restart it. */
#ifndef JITDUMP_PROCESS_START_H
#define JITDUMP_PROCESS_START_H

#include <stdbool.h>
#include <stdint.h>

/* Set *MONOTONIC_NS to the time by CLOCK_MONOTONIC, up to a tick too early.  Returns false if /proc
 * does not say. */
bool jd_process_start(uint64_t *monotonic_ns);

#endif
