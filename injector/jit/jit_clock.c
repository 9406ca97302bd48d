/* See jit_clock.h. */
#include "injector/jit/jit_clock.h"

#include <time.h>

static const char *choose_cycles(struct jit_clock *clock, const struct profile *profile)
{
    bool own_clock = true;
    for (size_t i = 0; i < profile->file->event_count; i++)
        own_clock = own_clock && !profile->file->events[i].use_clockid;
    if (!own_clock)
        return "its timestamps are CPU cycles, which can't be compared with perf record -k; record "
               "without -k, or let the runtime use CLOCK_MONOTONIC";
    if (!profile->time_conv.known)
        return "its timestamps are CPU cycles, and the profile has no conversion for them (no "
               "TIME_CONV record); record with -k mono and let the runtime use CLOCK_MONOTONIC";
    *clock = (struct jit_clock){true, profile->time_conv};
    return NULL;
}

const char *jit_clock_choose(struct jit_clock *clock, const struct profile *profile,
                             const struct jit_dump *dump)
{
    if (dump->flags & JITDUMP_FLAG_ARCH_TIMESTAMP)
        return choose_cycles(clock, profile);
    if (!perf_file_uses_clock(profile->file, CLOCK_MONOTONIC))
        return "the profile was not recorded with the dump's clock; record with perf record -k "
               "mono";
    *clock = (struct jit_clock){0};
    return NULL;
}

uint64_t jit_clock_to_perf(const struct jit_clock *clock, uint64_t timestamp)
{
    if (!clock->cycles)
        return timestamp;
    const struct time_conv *conv = &clock->conv;
    uint64_t cycles = timestamp;
    if (conv->short_counter)
        cycles = conv->cycles + ((cycles - conv->cycles) & conv->mask);
    uint64_t rest = cycles & ((UINT64_C(1) << conv->shift) - 1);
    return conv->zero_ns + (cycles >> conv->shift) * conv->mult +
           ((rest * conv->mult) >> conv->shift);
}
