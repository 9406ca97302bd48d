/* The machine's clocks, read now and all at one moment.
 *
 * A recording of this boot can be compared with them: except for drift, two clocks are as far apart
 * now as they were then.
 */
#ifndef PERFJIT_CLOCK_LIVE_H
#define PERFJIT_CLOCK_LIVE_H

#include "injector/perf_data/perf_file.h"

#include <stdbool.h>
#include <stdint.h>

/* The clocks of a dump or a profile. */
enum clock_kind {
    CLOCK_KIND_MONOTONIC,
    CLOCK_KIND_RAW,
    CLOCK_KIND_BOOTTIME,
    CLOCK_KIND_REALTIME,
    CLOCK_KIND_TAI,
    CLOCK_KIND_PERF,   /* what perf uses without -k */
    CLOCK_KIND_CYCLES, /* the CPU's counter: x86-64 TSC, aarch64 CNTVCT */
    CLOCK_KINDS,
    CLOCK_KIND_UNKNOWN = CLOCK_KINDS,
    CLOCK_KIND_MIXED /* of a profile: its events differ */
};

struct clock_live {
    bool known[CLOCK_KINDS];
    uint64_t now[CLOCK_KINDS]; /* ns, or cycles */
    uint64_t width_ns;         /* the readings are at most this far apart */
    uint64_t cycles_per_s;     /* measured over 20 ms: right to about 1 in 10000 */
};

/* Read all clocks, cycles only if WITH_CYCLES, which takes 20 ms more.  What can't be read (perf's
 * needs perf_event_open) is not known. */
void clock_live_read(struct clock_live *live, bool with_cycles);

/* The clock that FILE was recorded with. */
enum clock_kind clock_kind_of_profile(const struct perf_file *file);

/* "CLOCK_MONOTONIC", "CPU cycles", ... */
const char *clock_kind_name(enum clock_kind kind);

#endif
