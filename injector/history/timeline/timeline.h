/* A process's code events and mappings, played in time order.  They say which function had which
 * addresses when.
 *
 * perf shows for an address the newest mapping that covers it.  So the answer is a list of
 * *changes*: from this moment on, these addresses belong to that function (or to nobody, after an
 * unload).  Nothing can be seen between two samples, so all that happens between two of them is one
 * moment.  Functions that are compiled one after the other become one change each at the same time.
 * The image plan joins these changes into one record.  A function that was replaced before a sample
 * could hit it does not appear at all.
 *
 * The profile's own mappings take part.  A mapping of another file over JIT code ends that code.
 * An anonymous mapping over live JIT code is the arena itself, logged again because the runtime
 * flipped its protection or let it grow.  Such a record would hide the code, and is therefore
 * dropped.  If it also covers addresses that no earlier mapping did, those parts are added again.
 */
#ifndef PERFJIT_TIMELINE_H
#define PERFJIT_TIMELINE_H

#include "injector/history/timeline/change.h"
#include "injector/log/code/jit_process.h"

/* Play PROCESS, which must live on, into TIMELINE, which must not move.  PARENT: the timeline of
 * the process that it inherits from, or NULL.  *INHERITED_COUNT: how many functions children were
 * given so far, in all timelines; NULL will do for a process of which no child inherits.
 * SAMPLE_TIMES_NS, ascending, are the moments at which the profile looks.  Returns 0, or -1 without
 * memory, with the failure text set. */
int timeline_play(struct timeline *timeline, const struct jit_process *process,
                  const struct timeline *parent, size_t *inherited_count,
                  const uint64_t *sample_times_ns, size_t sample_count, struct findings *findings);

/* Whether the map record at OFFSET of the recording is left out; TIMELINE may be NULL: then none
 * is. */
bool timeline_drops(const struct timeline *timeline, uint64_t offset);

void timeline_free(struct timeline *timeline);

#endif
