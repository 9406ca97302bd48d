/* See jit_clock.h. */
#include "injector/log/clock/jit_clock.h"

static uint64_t conv_ns(const struct time_conv *conv, uint64_t cycles)
{
    if (conv->short_counter)
        cycles = conv->cycles + ((cycles - conv->cycles) & conv->mask);
    uint64_t rest = cycles & ((UINT64_C(1) << conv->shift) - 1);
    return conv->zero_ns + (cycles >> conv->shift) * conv->mult +
           ((rest * conv->mult) >> conv->shift);
}

/* Time is never before 0 or after all time, for any stamp: the order of events must stay. */
static uint64_t clamp(__int128 time)
{
    return time < 0 ? 0 : time > UINT64_MAX ? UINT64_MAX : (uint64_t)time;
}

uint64_t jit_clock_to_perf(const struct jit_clock *clock, uint64_t timestamp)
{
    if (clock->frozen)
        return clock->to_ref;
    uint64_t time = clock->cycles ? conv_ns(&clock->conv, timestamp) : timestamp;
    __int128 since = (__int128)time - clock->from_ref;
    if (clock->from_span)
        since = since * (__int128)clock->to_span / clock->from_span;
    return clamp(clock->to_ref + since);
}
