/* One candidate for a dump's clock: the conversion to the profile's clock, its source, and its
 * error. */
#ifndef PERFJIT_CLOCK_CANDIDATE_H
#define PERFJIT_CLOCK_CANDIDATE_H

#include "injector/log/clock/clock_evidence.h"
#include "injector/log/clock/clock_live.h"
#include "injector/log/clock/jit_clock.h"

enum clock_source {
    CLOCK_SOURCE_SAME,        /* both are one clock */
    CLOCK_SOURCE_CONV,        /* only TIME_CONV */
    CLOCK_SOURCE_MARKER,      /* header and marker */
    CLOCK_SOURCE_MARKER_LIVE, /* header, marker, and the current clocks, which show the drift */
    CLOCK_SOURCE_LIVE,        /* the clocks now */
    CLOCK_SOURCE_BOUNDS,      /* marker before first record, load before sample */
    CLOCK_SOURCE_SHARED,      /* another dump of the recording */
};

struct clock_candidate {
    enum clock_kind kind;
    enum clock_source source;
    struct jit_clock clock;
    uint64_t error_ns; /* upper bound of the conversion's error */
    /* By so much the clocks now disagree with the header, where it is taken for the mapping's time
     * all the same: either clocks have drifted, or the process waited so long. */
    uint64_t unexplained_ns;
    bool proven;  /* there is evidence for this clock besides the flag */
    bool doubted; /* by it a sample is in code that was loaded later; everything else fits */
    bool paired;  /* header and marker are of one moment: the header says so, or the current
                     clocks */
};

/* The best clock that any dump of a recording shows, for each kind of clock.  A process may have
 * waited between its header's time and the marker: another dump's clock holds for its dump, too.
 * All zeros: nothing is known yet. */
struct shared_clock {
    bool known;
    struct clock_candidate candidate;
    struct stamp_range stamps; /* of the dump that shows it */
};

struct shared_clocks {
    struct shared_clock of[CLOCK_KINDS];
};

/* The data from which a candidate is made.  LIVE is empty if the machine's clocks can't be used. */
struct clock_facts {
    struct clock_evidence evidence;
    struct clock_live live;
    struct time_conv conv;
    enum clock_kind profile_kind;
    bool same_boot; /* by the current clocks, the recording ended when its file was written, or the
                       dump was mapped when its own was made */
    const struct shared_clocks *shared; /* NULL: none */
};

/* Whether the header's time may be microseconds of the wall clock, which V8 and CPython put there.
 * It says nothing of the records' clock then. */
bool clock_header_is_wall(const struct clock_evidence *evidence);

/* Make the candidate for clock KIND. Returns false if it can't be converted to the profile's. */
bool clock_candidate_make(struct clock_candidate *candidate, const struct clock_facts *facts,
                          enum clock_kind kind);

#endif
