/* The map records that are added to a profile.  By them perf knows that an address belongs to an
 * image. */
#ifndef PERFJIT_ADDED_MAP_H
#define PERFJIT_ADDED_MAP_H

#include "injector/history/timeline/timeline.h"
#include "injector/inject/merge/unwinder_reset.h"

/* Turn the changes in TIMELINE, of PROCESS, number PROCESS_INDEX, into map records.  There is one
 * for each run of functions that share an image and a moment, for addresses whose code was
 * unloaded, and for each part of a dropped mapping that is added again.  Each image's unwind tables
 * get one at its first moment.  Also add the records that reset perf's unwinder as POLICY says
 * (unwinder_reset.h).  The changes of a moment are brought into the order of their records, in
 * TIMELINE.  THREADS are those of the profile.  Returns 0, or -1 with the failure text set.
 *
 * perf has one set of maps for the threads of a process, which it finds through the thread of each
 * record.  When the main thread has ended, perf 7 has two: that of the threads that it knew, and
 * that of a new main thread, for those that it meets later.  If there are such threads, the maps go
 * into both. */
int added_maps_add(struct added_records *added, struct timeline *timeline,
                   const struct jit_process *process, uint32_t process_index,
                   const struct image_plan *plan, const struct thread_list *threads,
                   enum reset_policy policy, struct findings *findings);

/* Put the record MAP, a map or one of a reset, into SINK, of ADDED_MAP_MAX_BYTES at least.  Returns
 * 0, or -1 if it is too long for SINK or for a record. */
enum { ADDED_MAP_MAX_BYTES = 8192 };
int added_map_put(const struct added_record *map, struct added_record_source *source,
                  struct byte_sink *sink);

#endif
