/* The map records that are added to a profile: what perf reads to know that an address belongs to
 * an image. */
#ifndef PERFJIT_ADDED_MAP_H
#define PERFJIT_ADDED_MAP_H

#include "injector/plan/image_plan.h"
#include "injector/recording/thread_list.h"
#include "injector/timeline/timeline.h"
#include "jitdump/byte_sink.h"

/* Beyond the kinds of change. */
enum {
    ADDED_TABLES = CHANGE_MAP + 1, /* the map through which an image's unwind tables are read */
    ADDED_COMM,       /* no maps from here on, but what makes perf forget how it unwound: see
                         unwinder_reset.h */
    ADDED_CLONE,      /* the thread forks an invented process */
    ADDED_RETURN,     /* which forks the process again */
    ADDED_THREAD,     /* which makes the thread again */
    ADDED_NAME,       /* and names it as event START of the thread list does */
    ADDED_NAMESPACES, /* and puts it where that says */
    ADDED_EXIT,       /* the thread, which had ended before, ends again */
};

/* How perf is made to forget how it unwound a process. */
enum reset_policy { RESET_NEVER, RESET_BY_COMM, RESET_BY_FORKS };

struct added_map {
    uint64_t time_ns;
    uint64_t start, end;
    uint32_t process;  /* index */
    uint32_t tid;      /* of a thread of the process that lives then */
    uint32_t kind;     /* enum change_kind, or ADDED_TABLES */
    uint32_t index;    /* of the image, or of the process's map */
    uint32_t sequence; /* in which order they were added */
};

struct added_maps {
    struct added_map *items; /* by time */
    size_t count, capacity;
};

/* Turn the changes of PROCESS, number PROCESS_INDEX, into map records, one for each run of
 * functions that share an image and a moment, and one for each image's unwind tables, at its first
 * moment; and make perf forget as POLICY says.  THREADS are those of the profile.  Returns 0, or -1
 * with the failure text set.
 *
 * perf has one set of maps for the threads of a process, which it finds through the thread of each
 * record.  When the main thread has ended, perf 7 has two: that of the threads that it knew, and
 * that of a new main thread, for those that it meets later.  Where there are such threads, the maps
 * go into both. */
int added_maps_add(struct added_maps *added, struct timeline *timeline,
                   const struct jit_process *process, uint32_t process_index,
                   const struct image_plan *plan, const struct thread_list *threads,
                   enum reset_policy policy, struct findings *findings);

/* Add one record.  Returns 0, or -1 without memory. */
int added_maps_append(struct added_maps *added, struct added_map map);

/* Bring the records of several processes into time order. */
void added_maps_sort(struct added_maps *added);

void added_maps_free(struct added_maps *added);

/* Everything that a record's bytes are made from. */
struct added_map_source {
    const struct profile *profile;
    const struct jit_process *processes;
    const struct image_plan *plan;
    const char *dso_dir; /* absolute */
    const struct thread_list *threads;
};

/* Put the record for MAP into SINK, of ADDED_MAP_MAX_BYTES at least.  Returns 0, or -1 if its path
 * is too long. */
enum { ADDED_MAP_MAX_BYTES = 8192 };
int added_map_put(const struct added_map *map, const struct added_map_source *source,
                  struct byte_sink *sink);

#endif
