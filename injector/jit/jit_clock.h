/* From a dump's timestamps to the profile's.
 *
 * perf record -k mono and a dump without the ARCH_TIMESTAMP flag both count CLOCK_MONOTONIC nanoseconds:
 * nothing to do.  A dump with the flag counts cycles of the CPU's counter; a profile recorded without -k has a
 * TIME_CONV record that turns those into its own clock (perf_event_open(2), time_zero):
 *
 *     ns = time_zero + (c >> shift) * mult + (((c & ((1 << shift) - 1)) * mult) >> shift)
 *
 * TIME_CONV leads to perf's clock and not to CLOCK_MONOTONIC, so cycles and -k mono do not go together.
 */
#ifndef PERFJIT_JIT_CLOCK_H
#define PERFJIT_JIT_CLOCK_H

#include "injector/jit/jit_dump.h"
#include "injector/perf_data/profile.h"

struct jit_clock {
    bool cycles;
    struct time_conv conv; /* when cycles */
};

/* Choose the conversion for DUMP.  Returns NULL, or why there is none and what to do. */
const char *jit_clock_choose(struct jit_clock *clock, const struct profile *profile,
                             const struct jit_dump *dump);

uint64_t jit_clock_to_perf(const struct jit_clock *clock, uint64_t timestamp);

#endif
