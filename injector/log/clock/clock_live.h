/* The machine's clocks, read now and all at one moment.
 *
 * A recording of this boot can be compared with them: except for drift, two clocks are as far apart
 * now as they were then.
 */
#ifndef PERFJIT_CLOCK_LIVE_H
#define PERFJIT_CLOCK_LIVE_H

#include "injector/log/clock/clock_kind.h"

#include <stdbool.h>
#include <stdint.h>

struct clock_live {
    bool known[CLOCK_KINDS];
    uint64_t now[CLOCK_KINDS]; /* ns, or cycles */
    uint64_t width_ns;         /* the readings are at most this far apart */
    uint64_t cycles_per_s;     /* measured over 20 ms: right to about 1 in 10000 */
};

/* Read all clocks, cycles only if WITH_CYCLES, which takes 20 ms more.  An unreadable clock is
 * unknown (perf's needs perf_event_open). */
void clock_live_read(struct clock_live *live, bool with_cycles);

#endif
