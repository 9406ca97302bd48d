/* See profile_events.h. */
#include "injector/profile/profile_events.h"

#include "injector/recording/perf_data/event_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No counter counts as far in a run: a sum of more is damage, and would wrap.  Readers of formats
 * have signed numbers. */
#define MOST_PERIODS ((uint64_t)INT64_MAX)

enum {
    SW_CPU_CLOCK = 0,
    SW_TASK_CLOCK = 1,
};

static uint64_t attr_field(const struct perf_file *file, size_t event, size_t at)
{
    const struct perf_section *attr = &file->events[event].attr;
    return attr->size < at + 8 ? 0 : perf_get_u64(file->data + attr->offset + at);
}

uint64_t profile_event_period(const struct perf_file *file, size_t event)
{
    return attr_field(file, event, PERF_ATTR_PERIOD);
}

static bool counts_ns(const struct perf_file *file, size_t event)
{
    uint64_t config = attr_field(file, event, PERF_ATTR_CONFIG);
    return file->events[event].off_cpu || (file->events[event].type == PERF_TYPE_SOFTWARE &&
                                           (config == SW_CPU_CLOCK || config == SW_TASK_CLOCK));
}

int profile_events_add(struct call_profile *profile, const struct perf_file *file)
{
    struct event_names names = event_names_begin(&file->features);
    for (size_t i = 0; i < file->event_count; i++) {
        const struct perf_section *attr = &file->events[i].attr;
        char own[EVENT_NAME_BYTES];
        size_t bytes = 0;
        const char *name = event_names_next(&names, &bytes);
        if (!name) {
            event_name_of_attr(own, file->data + attr->offset, (size_t)attr->size);
            if (!*own)
                snprintf(own, sizeof own, "event %zu", i + 1);
            bytes = strlen(name = own);
        }
        const struct profile_event event = {call_profile_add_string(profile, name, bytes),
                                            counts_ns(file, i), file->events[i].off_cpu};
        if (event.name == PROFILE_NOTHING || call_profile_add_event(profile, &event))
            return -1;
    }
    return 0;
}

int profile_events_add_waiting(struct call_profile *profile)
{
    static const char name[] = PERF_OFF_CPU_NAME;
    const struct profile_event event = {call_profile_add_string(profile, name, sizeof name - 1),
                                        true, true};
    return event.name == PROFILE_NOTHING ? -1 : call_profile_add_event(profile, &event);
}

/* ---- Samples ---- */

bool *profile_events_with_samples(const struct call_profile *profile)
{
    bool *has = calloc(profile->event_count + 1, sizeof *has);
    for (size_t i = 0; has && i < profile->sample_count; i++)
        has[profile->samples[i].event] = true;
    return has;
}

/* The sums of all events' periods, MOST_PERIODS at most, to be freed; NULL without memory. */
static uint64_t *sum_periods(const struct call_profile *profile)
{
    uint64_t *sums = calloc(profile->event_count + 1, sizeof *sums);
    for (size_t i = 0; sums && i < profile->sample_count; i++) {
        const struct call_sample *sample = &profile->samples[i];
        uint64_t left = MOST_PERIODS - sums[sample->event];
        sums[sample->event] += sample->period < left ? sample->period : left;
    }
    return sums;
}

int profile_events_check_periods(struct call_profile *profile, bool *wrong)
{
    uint64_t *sums = sum_periods(profile);
    *wrong = false;
    for (size_t i = 0; sums && i < profile->sample_count; i++)
        if (sums[profile->samples[i].event] == MOST_PERIODS) {
            profile->samples[i].period = 0;
            *wrong = true;
        }
    free(sums);
    return sums ? 0 : -1;
}
