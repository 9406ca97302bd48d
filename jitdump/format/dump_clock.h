/* The clock that stamps records: CLOCK_MONOTONIC in ns, or the CPU's counter in cycles. */
#ifndef JITDUMP_DUMP_CLOCK_H
#define JITDUMP_DUMP_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Whether this machine has a counter that perf's TIME_CONV record is about. */
bool jd_clock_has_counter(void);

uint64_t jd_clock_now(bool counter);

#endif
