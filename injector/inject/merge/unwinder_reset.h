/* The records that make perf forget how it unwound a process, where an address has a new owner.
 *
 * The unwinders of perf keep their results for an address, and perf does not tell them of new maps.
 * With libunwind (perf up to version 6) perf goes on unwinding by the dead function's table: about
 * 1 % of the chains of a JIT that recompiles are wrong.  With libdw (perf 7) the dead function's
 * file stays the one module at that address: nearly all of these chains are wrong.
 *
 * Both keep their results with the process's set of maps, and perf copies that set when a process
 * forks.  So the process forks an invented one, which forks the process again: a new set with the
 * same maps.  All other threads that perf knows are made again, to share the new set, and get their
 * names and namespaces back.  Only report --tasks and script --show-task-events show these records.
 *
 *     FORK CLONE from PROCESS    FORK PROCESS from CLONE
 *     { FORK THREAD from PROCESS    COMM, NAMESPACES THREAD } for each thread
 *
 * If the main thread has ended, another one forks, and the main thread that was made ends at once:
 * EXIT.
 *
 * perf copies all maps each time.  If that would be too many copies, one COMM record says instead
 * that the process has execed, under its present name.  That helps only libunwind, and costs
 * nothing.  The same where an event is a tracepoint that perf trace, perf sched or others count
 * (tracepoints.h): they keep that with perf's thread, and would lose it with each fork.
 */
#ifndef PERFJIT_UNWINDER_RESET_H
#define PERFJIT_UNWINDER_RESET_H

#include "injector/inject/merge/added_record.h"

/* How perf is made to forget how it unwound a process. */
enum reset_policy { RESET_NEVER, RESET_BY_COMM, RESET_BY_FORKS };

/* The moments in a process's life at which resets are made. */
struct unwinder_reset {
    struct thread_sweep *threads;
    uint32_t process; /* index */
    uint32_t pid;
    bool by_comm; /* forks would be too expensive, or do harm */
};

/* The resets that the recording allows. */
enum reset_policy unwinder_reset_policy(const struct perf_file *file);

/* TIMELINE tells how many resets and maps there can be at most.  THREADS is to be where the next
 * reset is made, and outlives RESET. */
void unwinder_reset_open(struct unwinder_reset *reset, struct thread_sweep *threads,
                         const struct jit_process *process, uint32_t process_index,
                         const struct timeline *timeline, enum reset_policy policy);

/* Add the records of one reset, at TIME_NS.  Returns 0, or -1 without memory. */
int unwinder_reset_add(struct unwinder_reset *reset, struct added_records *added, uint64_t time_ns);

/* Put one of those records into SINK; a name that the profile does not tell is left out.  Returns 0
 * or -1. */
int unwinder_reset_put(const struct added_record *map, const struct added_record_source *source,
                       struct byte_sink *sink);

#endif
