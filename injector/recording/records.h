/* The results of one pass over a profile's records: mappings, processes, sample times, clock
 * conversion. */
#ifndef PERFJIT_RECORDS_H
#define PERFJIT_RECORDS_H

#include "injector/recording/kernel_code.h"
#include "injector/recording/life_moment.h"
#include "injector/recording/losses.h"
#include "injector/recording/perf_data/perf_record.h"
#include "injector/recording/record_marks.h"
#include "injector/recording/thread_names.h"

/* perf synthesizes records from /proc, without a time, for the mappings that exist at that moment.
 * At the start of a recording these mappings are older than the recording.  At a snapshot
 * (--overwrite) and with --tail-synthesize such records come after the recorded ones.  They belong
 * to the program that the process ran last, and may be as old as that program. */
struct recorded_map {
    struct perf_map map;
    uint64_t time_ns; /* if synthesized late, when that program began; 0: before the recording */
    bool synthesized;
    bool late; /* synthesized after samples: a reader applies it in file order */
    const struct recorded_map *text; /* of memory: the mapping of the file whose text it is, moved
                                      * (moved_text.h); or NULL */
    bool text_gap;                   /* that one ends where the memory begins */
    bool text_stays;                 /* it is the program's, which is never unmapped */
    struct perf_record record;
};

enum task_kind {
    TASK_FORK,   /* of a process or thread */
    TASK_EXIT,   /* of a thread */
    TASK_EXEC,   /* of a process: a COMM by exec */
    TASK_RENAME, /* any other COMM of a main thread */
};

/* Something that happened to a process or thread. */
struct recorded_task {
    uint64_t time_ns;
    uint32_t kind;
    uint32_t pid, tid;
    uint32_t parent; /* FORK: pid of the parent process; pid itself for a thread */
    bool fresh;      /* FORK: the child has none of its parent's mappings */
    struct perf_record record;
};

/* The namespaces of a process from TIME_NS on. */
struct recorded_namespace {
    uint64_t time_ns;
    uint32_t pid;
    uint64_t inode;       /* of the pid namespace */
    uint64_t mount_inode; /* 0: unknown */
};

/* How the CPU's counter becomes perf's clock: PERF_RECORD_TIME_CONV. */
struct time_conv {
    bool known;
    bool short_counter; /* the counter has only the bits of time_mask */
    uint64_t shift, mult, zero_ns;
    uint64_t cycles, mask;
};

struct records {
    const struct perf_file *file;
    struct record_marks marks;
    struct thread_list threads;
    struct thread_names names;
    struct kernel_code kernel_code;
    struct recorded_map *maps; /* by process, then by time, then in file order */
    size_t map_count, map_capacity;
    struct recorded_task *tasks; /* by process, then by time, then in file order */
    size_t task_count, task_capacity;
    struct recorded_namespace *namespaces; /* in file order */
    size_t namespace_count, namespace_capacity;
    uint64_t *sample_times_ns; /* ascending */
    size_t sample_count, sample_capacity;
    struct time_conv time_conv;
    struct losses losses;
};

/* Read all records of FILE.  Returns 0, or -1 with the failure text set.  Release with records_free
 * in either case. */
int records_read(struct records *records, const struct perf_file *file, struct findings *findings);

/* When the last sample was taken, 0: none.  The time of left-over samples (perf_time.h) is unknown.
 */
uint64_t records_last_sample_ns(const struct records *records);

/* The maps of process PID, by time; *COUNT is set to their number. */
const struct recorded_map *records_maps_of(const struct records *records, uint32_t pid,
                                           size_t *count);

/* The same for an event of process PID. */
const struct recorded_task *records_tasks_of(const struct records *records, uint32_t pid,
                                             size_t *count);

/* The inode of the pid namespace that process PID was in at TIME_NS, or 0 if the recording does not
 * say. */
uint64_t records_namespace_of(const struct records *records, uint32_t pid, uint64_t time_ns);

/* The same of its mount namespace. */
uint64_t records_mount_namespace_of(const struct records *records, uint32_t pid, uint64_t time_ns);

/* Whether a sample was taken in process PID, or at all, with a time or without.  Reads the profile
 * again: for rare use. */
bool records_has_sample_of(const struct records *records, uint32_t pid);
bool records_has_samples(const struct records *records);

/* Some record with a sample_id, into *RECORD.  Returns false, and leaves *RECORD as it is,
 * if there is none. */
bool records_any_trailer(const struct records *records, struct perf_record *record);

struct life_moment life_moment_of(const struct recorded_map *map);

void records_free(struct records *records);

#endif
