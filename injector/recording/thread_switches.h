/* When threads ran and when not, as far as the recording tells:
 *
 *     SWITCH, SWITCH_CPU_WIDE   (perf record --switch-events) a thread goes, or comes
 *     sched:sched_switch        a sample of a thread that goes, with its stack; names the one that
 *                               comes
 *     context-switches          the software event: a sample of a thread that goes, with its stack
 *
 * Where there are SWITCH records, they tell the times, and samples of the other two tell the
 * stacks.
 */
#ifndef PERFJIT_THREAD_SWITCHES_H
#define PERFJIT_THREAD_SWITCHES_H

#include "injector/recording/perf_data/perf_file.h"

/* A thread did not run, and ran again. */
struct thread_wait {
    uint64_t from_ns, to_ns;
    uint64_t stack; /* offset of the SAMPLE that has its stack; 0: there is none */
    uint32_t pid, tid;
    bool exact;     /* that sample was taken when the thread went; else it is the thread's last one
                     * before */
    bool preempted; /* it had more to do, and waited for a processor */
};

/* So many threads run from this record on. */
struct thread_count {
    uint64_t time_ns, offset; /* of the record */
    int64_t running;
};

/* What tells the times. */
enum switch_source {
    SWITCHES_NONE,
    SWITCHES_RECORDED,
    SWITCHES_TRACED /* by sched_switch */
};

struct thread_switches {
    enum switch_source source;
    bool of_processors; /* what ran on whole processors was recorded */
    bool not_all; /* a part of the switches has samples: the event has a frequency, or a period */
    struct thread_wait *waits; /* by time */
    size_t wait_count, wait_capacity;
    size_t exact_count, without_stack_count;
    size_t endless_count; /* were over at some time, but nothing tells when: they are no waits */
    size_t open_count;    /* threads that had not come back when the recording ended */
    struct thread_count *counts; /* by time, of SWITCHES_RECORDED */
    size_t count_count, count_capacity;
};

/* Whether FILE has any such record or event: a recording without is not read for nothing. */
bool thread_switches_are_in(const struct perf_file *file);

/* Read those of FILE.  Returns 0, or -1 without memory.  Release with thread_switches_free in
 * either case. */
int thread_switches_read(struct thread_switches *switches, const struct perf_file *file);

/* How many threads ran at the record at OFFSET, of TIME_NS: one at least, as perf report --latency
 * has it.  0: the recording doesn't tell. */
uint32_t thread_switches_running(const struct thread_switches *switches, uint64_t time_ns,
                                 uint64_t offset);

void thread_switches_free(struct thread_switches *switches);

#endif
