/* The names of threads at a moment.  A thread's name is that of its last COMM.  Without a COMM it
 * is the name of its process, or of the process that this one was forked from. */
#ifndef PERFJIT_THREAD_NAMES_H
#define PERFJIT_THREAD_NAMES_H

#include "injector/recording/process_life.h"

struct thread_naming;

struct thread_names {
    const struct thread_list *list;
    const struct process_lives *lives;
    struct thread_naming *items; /* by process, thread, time */
    size_t count;
};

/* Returns 0, or -1 without memory.  Release with thread_names_free in either case. */
int thread_names_begin(struct thread_names *names, const struct thread_list *list,
                       const struct process_lives *lives);

/* The name of thread TID of PID, of LIFE (or NO_LIFE), at TIME_NS: a view of the recording; "" if
 * nothing names it. */
const char *thread_names_at(const struct thread_names *names, uint32_t life, uint32_t pid,
                            uint32_t tid, uint64_t time_ns);

void thread_names_free(struct thread_names *names);

#endif
