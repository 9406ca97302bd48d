/* Spans of the program in a profile, and the moments that are in some of them. */
#ifndef PERFJIT_PROFILE_SPANS_H
#define PERFJIT_PROFILE_SPANS_H

#include "injector/log/spans/marker_file.h"
#include "injector/profile/call_profile.h"

/* Add SPANS, by time.  Returns 0, or -1 without memory. */
int profile_spans_add(struct call_profile *profile, const struct marker_spans *spans);

struct time_range {
    uint64_t from_ns, to_ns; /* without that moment itself */
};

/* The moments of each thread that are in spans: ranges that don't touch each other, by time. */
struct span_moments {
    struct time_range *ranges;
    size_t range_count, range_capacity;
    size_t *first, *end; /* by thread: its ranges.  Threads may share them. */
};

/* Find the moments of the threads of PROFILE in spans whose name is NAME, or matches it as a
 * pattern.  *FOUND: there is such a span.  Returns 0, or -1 without memory.  Release with
 * span_moments_free in either case. */
int span_moments_find(struct span_moments *moments, const struct call_profile *profile,
                      const char *name, bool *found);

/* How much of the time from FROM_NS to TO_NS is in THREAD's ranges. */
uint64_t span_moments_within(const struct span_moments *moments, uint32_t thread, uint64_t from_ns,
                             uint64_t to_ns);

/* Whether the moment TIME_NS is in one. */
bool span_moments_have(const struct span_moments *moments, uint32_t thread, uint64_t time_ns);

void span_moments_free(struct span_moments *moments);

#endif
