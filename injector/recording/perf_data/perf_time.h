/* Times on a profile's clock: which are real, and how they are added.
 *
 * At the end, perf record --off-cpu (perf 6.2 and newer) writes its remaining data as samples with
 * the time ~0 << 32. perf then shows them after everything else.  They are not real times: they
 * show neither when the recording ended nor when code was live.
 */
#ifndef PERFJIT_PERF_TIME_H
#define PERFJIT_PERF_TIME_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a clock can have had this value: none has run for 292 years. */
static inline bool perf_time_is_real(uint64_t time_ns)
{
    return time_ns <= INT64_MAX;
}

/* LATER_NS after TIME_NS; all time ends at UINT64_MAX. */
static inline uint64_t perf_time_after(uint64_t time_ns, uint64_t later_ns)
{
    return time_ns > UINT64_MAX - later_ns ? UINT64_MAX : time_ns + later_ns;
}

/* How long it is from one of two times to the other. */
static inline uint64_t perf_time_apart(uint64_t a, uint64_t b)
{
    return a < b ? b - a : a - b;
}

#endif
