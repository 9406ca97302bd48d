/* See compile_time.h. */
#include "injector/compare/kept_runs/compile_time.h"

#include "injector/compare/kept_runs/activity.h"

uint64_t compile_time_of(const struct call_profile *profile)
{
    struct activity_map activities = {0};
    uint64_t sum = 0;
    int result = activity_map_make(&activities, profile);
    for (size_t i = 0; !result && i < profile->sample_count; i++)
        if (activity_of(&activities, &profile->samples[i]) == ACTIVITY_COMPILER)
            sum += profile->samples[i].period;
    activity_map_free(&activities);
    return result ? UINT64_MAX : sum;
}
