/* The names of threads and processes at each moment: the one place where these are looked up.
 *
 *     pid 7    |-- sh --|-- node --|-- worker --|   |-- sh --|-- cc ---
 *            FORK     exec      rename        EXIT  FORK    exec      (the pid is used again)
 *
 * A thread has the name of the thread that created it, until a COMM gives it another.  A main
 * thread has that of the thread that forked it.  Samples in front of a thread's first COMM have
 * that name if no FORK tells another, as in perf.  A COMM that perf synthesized late, without a
 * time, is that of the thread's last life, if no COMM with a time names that: perf record
 * --overwrite loses the COMM of an exec, and "perf-exec" is what was before that.  The idle tasks,
 * of pid 0, are "swapper".
 *
 * A process has one name in each of its lives: the last that its main thread had there. */
#ifndef PERFJIT_THREAD_NAMES_H
#define PERFJIT_THREAD_NAMES_H

#include "injector/recording/life_moment.h"
#include "injector/recording/thread_list.h"

struct thread_naming;

struct thread_names {
    const struct thread_list *list;
    struct thread_naming *items; /* by process, thread, moment */
    size_t count;
};

/* The names of the threads of LIST, which is in order, and outlives NAMES.  Returns 0, or -1
 * without memory.  Release with thread_names_free in either case. */
int thread_names_find(struct thread_names *names, const struct thread_list *list);

/* The COMM that names thread TID of PID up to TIME_NS; NULL: none does. */
const struct perf_record *thread_names_comm(const struct thread_names *names, uint32_t pid,
                                            uint32_t tid, uint64_t time_ns);

/* The name of thread TID of PID at TIME_NS; "" if nothing names it. */
const char *thread_names_at(const struct thread_names *names, uint32_t pid, uint32_t tid,
                            uint64_t time_ns);

enum { THREAD_NUMBER_BYTES = 16 };

/* What stands for the name of a thread that nothing names, as in perf: ":7". */
void thread_names_number(char text[THREAD_NUMBER_BYTES], uint32_t tid);

/* The name of PID in the life that ends at NEXT; "" if nothing names it. */
const char *thread_names_of_process(const struct thread_names *names, uint32_t pid,
                                    struct life_moment next);

void thread_names_free(struct thread_names *names);

#endif
