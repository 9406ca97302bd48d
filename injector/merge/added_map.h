/* The map records that are added to a profile: what perf reads to know that an address belongs to
 * an image. */
#ifndef PERFJIT_ADDED_MAP_H
#define PERFJIT_ADDED_MAP_H

#include "injector/merge/unwinder_reset.h"
#include "injector/timeline/timeline.h"

/* Turn the changes of PROCESS, number PROCESS_INDEX, into map records, one for each run of
 * functions that share an image and a moment, and one for each image's unwind tables, at its first
 * moment; and make perf forget as POLICY says.  THREADS are those of the profile.  Returns 0, or -1
 * with the failure text set.
 *
 * perf has one set of maps for the threads of a process, which it finds through the thread of each
 * record.  When the main thread has ended, perf 7 has two: that of the threads that it knew, and
 * that of a new main thread, for those that it meets later.  Where there are such threads, the maps
 * go into both. */
int added_maps_add(struct added_records *added, struct timeline *timeline,
                   const struct jit_process *process, uint32_t process_index,
                   const struct image_plan *plan, const struct thread_list *threads,
                   enum reset_policy policy, struct findings *findings);

/* Put the record MAP, or the one that makes perf forget, into SINK, of ADDED_MAP_MAX_BYTES at
 * least.  Returns 0, or -1 if its path is too long. */
enum { ADDED_MAP_MAX_BYTES = 8192 };
int added_map_put(const struct added_record *map, const struct added_record_source *source,
                  struct byte_sink *sink);

#endif
