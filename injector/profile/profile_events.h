/* The events of a recording, as a profile names them: by the feature EVENT_DESC
 *
 *     0 u32 nr, 4 u32 attr_size, then nr times:
 *         attr_size bytes, u32 nr_ids, u32 size and size bytes of name, nr_ids times u64
 * or, where that is missing or unsound, by their kind, or else by number. */
#ifndef PERFJIT_PROFILE_EVENTS_H
#define PERFJIT_PROFILE_EVENTS_H

#include "injector/profile/call_profile.h"
#include "injector/recording/perf_data/perf_file.h"

/* Add all events of FILE, in their order.  Returns 0, or -1 without memory. */
int profile_events_add(struct call_profile *profile, const struct perf_file *file);

/* Add the event of the times that threads waited, which perf itself calls so if it records them.
 * Returns 0, or -1 without memory. */
int profile_events_add_waiting(struct call_profile *profile);

/* The period of EVENT's samples that do not tell one, as perf has it: the fixed one, or the number
 * that is the frequency; 0: there is none. */
uint64_t profile_event_period(const struct perf_file *file, size_t event);

/* Whether each event has samples.  The caller frees the array; NULL without memory.  A damaged
 * recording may have as many events as samples. */
bool *profile_events_with_samples(const struct call_profile *profile);

/* Make the periods of an event 0 whose sum is more than can be; *WRONG: there was one.  Returns 0,
 * or -1 without memory. */
int profile_events_check_periods(struct call_profile *profile, bool *wrong);

#endif
