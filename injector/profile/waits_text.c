/* See waits_text.h. */
#include "injector/profile/waits_text.h"

#include "injector/text/plural.h"

#include <stdio.h>

static void put_stacks(const struct profile_waits *waits, char *text, size_t size)
{
    const size_t borrowed = waits->by_last_sample;
    int bytes =
        snprintf(text, size,
                 "of %zu wait%s, %zu %s the stack of the thread's last sample "
                 "before it waited",
                 waits->count, plural(waits->count), borrowed, borrowed == 1 ? "has" : "have");
    if (bytes > 0 && (size_t)bytes < size && waits->without_stack)
        bytes += snprintf(text + bytes, size - (size_t)bytes, ", and %zu %s none",
                          waits->without_stack, waits->without_stack == 1 ? "has" : "have");
    if (bytes > 0 && (size_t)bytes < size)
        snprintf(
            text + bytes, size - (size_t)bytes,
            "; perfjit record --off-cpu takes the stacks of the waits themselves, as root or with "
            "kernel.perf_event_paranoid=1");
}

bool waits_text(const struct call_profile *profile, const struct profile_choice *choice, bool waits,
                size_t index, char *text, size_t size)
{
    const struct profile_waits *known = &profile->waits;
    const bool is_page = waits;
    waits = waits && known->count;
    if (waits && known->by_last_sample + known->without_stack && index-- == 0)
        put_stacks(known, text, size);
    else if (waits && known->endless && index-- == 0)
        snprintf(text, size,
                 "nothing tells when %zu further wait%s ended, and %s not counted; perf record "
                 "--switch-events tells it",
                 known->endless, plural(known->endless),
                 known->endless == 1 ? "it is" : "they are");
    else if (waits && known->open && index-- == 0)
        snprintf(text, size,
                 "%zu thread%s still waited when the recording ended; that is not counted",
                 known->open, plural(known->open));
    else if ((choice->moments || is_page) && profile->has_spans_elsewhere && index-- == 0)
        snprintf(
            text, size,
            "the recording is not on CLOCK_MONOTONIC, as the program's spans are, so these may "
            "be off; perf record -k mono makes them fit");
    else if (choice->weight == WEIGHT_LATENCY && known->of_processors && index-- == 0)
        snprintf(text, size,
                 "whole processors were recorded: how many of a command's threads ran is known of "
                 "recordings of that command alone");
    else
        return false;
    return true;
}
