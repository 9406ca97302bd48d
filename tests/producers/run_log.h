/* What ran when, noted down by the program that ran it: the truth that truth_check judges by.
 *
 *     # runs
 *     # clock MONOTONIC PERF ERROR         perf's own clock at a time of CLOCK_MONOTONIC, in ns, right within ERROR ns
 *     # arena START END                    only code that is noted down runs at these addresses
 *     run PID TID START END ADDRESS SIZE KIND NAME
 *
 * From START to END (CLOCK_MONOTONIC, ns) thread TID executed in [ADDRESS, ADDRESS + SIZE) and nowhere else in an arena.  The
 * code belongs to function NAME, or to none if that is "-": code that the runtime told nobody about.  KIND says what is special about
 * the run, for the tables.  The thread takes START before it jumps there and END after it came back, so a sample of it
 * between the two is this run's, and no clock has to be trusted further than that.
 *
 * The log is shared memory: forked children write into the same one, and their parent writes the file.
 */
#ifndef RUN_LOG_H
#define RUN_LOG_H

#include <inttypes.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { RUN_LOG_RUNS = 1 << 17, RUN_NAME_BYTES = 32 };

struct run {
    int pid, tid;
    uint64_t start_ns, end_ns;
    uint64_t addr, bytes;
    char kind[RUN_NAME_BYTES], name[RUN_NAME_BYTES];
};

struct run_log {
    atomic_size_t count;
    struct run runs[RUN_LOG_RUNS];
};

/* Returns NULL without memory. */
static inline struct run_log *run_log_open(void)
{
    void *log = mmap(NULL, sizeof(struct run_log), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return log == MAP_FAILED ? NULL : log;
}

/* Returns 0, or -1 if the log is full. */
static inline int run_log_add(struct run_log *log, const struct run *run)
{
    size_t at = atomic_fetch_add(&log->count, 1);
    if (at >= RUN_LOG_RUNS)
        return -1;
    log->runs[at] = *run;
    return 0;
}

static inline void run_log_write(const struct run_log *log, FILE *file)
{
    size_t count = atomic_load(&log->count);
    for (size_t i = 0; i < count && i < RUN_LOG_RUNS; i++) {
        const struct run *run = &log->runs[i];
        fprintf(file, "run %d %d %" PRIu64 " %" PRIu64 " %" PRIx64 " %" PRIu64 " %s %s\n", run->pid,
                run->tid, run->start_ns, run->end_ns, run->addr, run->bytes, run->kind, run->name);
    }
}

#endif
