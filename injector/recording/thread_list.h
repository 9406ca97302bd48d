/* The threads of a profile's processes, and their namespaces.
 *
 * A thread is known from the first record that mentions it.  That is its FORK, or the COMM that
 * perf record writes for threads that already ran.  If these are missing, it is a mapping that the
 * thread made or a sample in it.  thread_names.h has their names.
 */
#ifndef PERFJIT_THREAD_LIST_H
#define PERFJIT_THREAD_LIST_H

#include "injector/arrays/address_map.h"
#include "injector/recording/perf_data/perf_record.h"

#include <stddef.h>
#include <stdint.h>

/* The threads in which samples were taken, and since when: for those that no record introduces.
 *
 * perf creates a thread by itself at its first sample.  With -C, or where
 * records were lost, that is all that is known of a thread.
 */
struct thread_sighting {
    uint64_t time_ns;
    uint32_t pid, tid;
};

struct thread_sightings {
    struct thread_sighting *items;
    size_t count, capacity;
};

/* Add a sample of a thread.  Returns 0, or -1 without memory. */
int thread_sightings_add(struct thread_sightings *sightings, uint32_t pid, uint32_t tid,
                         uint64_t time_ns);

/* Keep the first one of each thread. */
void thread_sightings_reduce(struct thread_sightings *sightings);

void thread_sightings_free(struct thread_sightings *sightings);

enum thread_event_kind {
    THREAD_BORN,
    THREAD_FORKED, /* the main thread, with its process */
    THREAD_NAMED,
    THREAD_ENDED,
    THREAD_MAPPED,
    THREAD_SAMPLED,
    THREAD_NAMESPACES, /* its namespaces from here on */
};

struct thread_event {
    uint64_t time_ns;
    uint32_t kind;
    uint32_t pid, tid;
    uint32_t creator_pid, creator_tid; /* BORN: of the same process; FORKED */
    bool exec; /* NAMED: by exec, which no other thread of the process survives */
    bool late; /* NAMED: without a time, behind samples: at the end of the recording */
    struct perf_record record;
};

struct thread_list {
    struct thread_event *events; /* by process, then by time, then in file order */
    size_t count, capacity;
    struct thread_sightings sightings; /* becomes events when all is read */
};

#define THREAD_NO_NAMESPACES SIZE_MAX

struct live_thread {
    uint32_t tid;
    uint64_t since_ns;
    size_t namespaces; /* index of the event with its NAMESPACES record, or the above */
};

/* Which thread is known since when. */
struct thread_age {
    uint64_t since_ns;
    uint32_t tid;
};

/* The threads of one process as time advances. */
struct thread_sweep {
    const struct thread_list *list;
    uint32_t pid;
    size_t next, end; /* events */
    struct live_thread *threads;
    size_t count, capacity;
    struct address_map numbers; /* in THREADS, by tid */
    struct thread_age *ages;    /* of all threads but the main one, by age; some live no more */
    size_t age_count, age_capacity, oldest;
    bool main_ended; /* the main thread has */
    bool late;       /* and another one became known after that */
    uint64_t main_end_ns;
};

/* Take RECORD of FILE, each in its turn.  Then put their events in order.  LIST is zeros at first.
 * Both return 0, or -1 without memory.  Release with thread_list_free in any case. */
int thread_list_take(struct thread_list *list, const struct perf_file *file,
                     const struct perf_record *record);
int thread_list_order(struct thread_list *list);

/* Both, for all records of FILE, into LIST, which need not be zeros. */
int thread_list_read(struct thread_list *list, const struct perf_file *file);

/* How many bytes after pid and tid of RECORD, a NAMESPACES, describe the namespaces; 0: it is
 * damaged. */
size_t thread_namespaces_bytes(const struct perf_record *record);

void thread_list_free(struct thread_list *list);

struct thread_sweep thread_sweep_begin(const struct thread_list *list, uint32_t pid);

/* Advance to TIME_NS, which is not before the last one: SWEEP->threads are those that live then,
 * the main thread among them. Returns 0, or -1 without memory. */
int thread_sweep_to(struct thread_sweep *sweep, uint64_t time_ns);

/* The thread that added records name: the main thread, or the oldest live one if the main thread
 * has ended.  perf 7 forgets a thread that has ended, and would create an empty main thread for a
 * record that names it. */
uint32_t thread_sweep_speaker(struct thread_sweep *sweep);

void thread_sweep_end(struct thread_sweep *sweep);

#endif
