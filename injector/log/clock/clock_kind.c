/* See clock_kind.h. */
#include "injector/log/clock/clock_kind.h"

#include <time.h>

static const struct {
    const char *name;
    int32_t clockid; /* of clock_gettime; -1: none */
} kinds[CLOCK_KINDS] = {
    [CLOCK_KIND_MONOTONIC] = {"CLOCK_MONOTONIC", CLOCK_MONOTONIC},
    [CLOCK_KIND_RAW] = {"CLOCK_MONOTONIC_RAW", CLOCK_MONOTONIC_RAW},
    [CLOCK_KIND_BOOTTIME] = {"CLOCK_BOOTTIME", CLOCK_BOOTTIME},
    [CLOCK_KIND_REALTIME] = {"CLOCK_REALTIME", CLOCK_REALTIME},
    [CLOCK_KIND_TAI] = {"CLOCK_TAI", CLOCK_TAI},
    [CLOCK_KIND_PERF] = {"perf's own clock", -1},
    [CLOCK_KIND_CYCLES] = {"CPU cycles", -1},
};

const char *clock_kind_name(enum clock_kind kind)
{
    return kind < CLOCK_KINDS ? kinds[kind].name : "a clock that perfjit does not know";
}

enum clock_kind clock_kind_of_profile(const struct perf_file *file)
{
    const struct perf_event *first = &file->events[0];
    for (size_t i = 1; i < file->event_count; i++)
        if (file->events[i].use_clockid != first->use_clockid ||
            (first->use_clockid && file->events[i].clockid != first->clockid))
            return CLOCK_KIND_MIXED;
    if (!first->use_clockid)
        return CLOCK_KIND_PERF;
    for (int kind = 0; kind < CLOCK_KIND_PERF; kind++)
        if (kinds[kind].clockid == first->clockid)
            return (enum clock_kind)kind;
    return CLOCK_KIND_UNKNOWN;
}

int32_t clock_kind_id(enum clock_kind kind)
{
    return kinds[kind].clockid;
}
