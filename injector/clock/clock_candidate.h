/* One guess at what a dump is stamped with: a conversion to the profile's clock, where it is from,
 * and how sure it is. */
#ifndef PERFJIT_CLOCK_CANDIDATE_H
#define PERFJIT_CLOCK_CANDIDATE_H

#include "injector/clock/clock_evidence.h"
#include "injector/clock/clock_live.h"
#include "injector/clock/jit_clock.h"

enum clock_source {
    CLOCK_SOURCE_SAME,        /* both are one clock */
    CLOCK_SOURCE_CONV,        /* TIME_CONV alone */
    CLOCK_SOURCE_MARKER,      /* header and marker */
    CLOCK_SOURCE_MARKER_LIVE, /* and the clocks now, which show the drift */
    CLOCK_SOURCE_LIVE,        /* the clocks now */
    CLOCK_SOURCE_BOUNDS,      /* marker before first record, load before sample */
};

struct clock_candidate {
    enum clock_kind kind;
    enum clock_source source;
    struct jit_clock clock;
    uint64_t error_ns; /* the times are right but for this */
    bool proven;       /* that the dump has this clock does not rest on its flag */
};

/* What a guess is made from.  LIVE knows nothing if the machine's clocks are of no use. */
struct clock_facts {
    struct clock_evidence evidence;
    struct clock_live live;
    struct time_conv conv;
    enum clock_kind profile_kind;
    bool same_boot; /* the recording ended when, by the clocks now, its file was written */
};

/* Guess that the dump has clock KIND.  Returns false if there is no way from there to the
 * profile's. */
bool clock_candidate_make(struct clock_candidate *candidate, const struct clock_facts *facts,
                          enum clock_kind kind);

#endif
