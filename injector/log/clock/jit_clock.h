/* From a dump's timestamps to the profile's. */
#ifndef PERFJIT_JIT_CLOCK_H
#define PERFJIT_JIT_CLOCK_H

#include "injector/recording/records.h"

/* All zeros: the identity. */
struct jit_clock {
    bool cycles; /* conv converts them to ns first */
    struct time_conv conv;
    bool frozen;    /* every stamp maps to to_ref */
    bool by_marker; /* rests on the header's being of the mapping's time, which it so can't show */
    bool unflagged; /* another clock than the header's flags name */
    uint64_t from_ref, to_ref;   /* of the same moment */
    uint64_t from_span, to_span; /* as long as each other; 0: both count the same */
};

uint64_t jit_clock_to_perf(const struct jit_clock *clock, uint64_t timestamp);

#endif
