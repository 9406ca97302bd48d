/* Counts of a recording's stacks for the user: how many are whole, and why the others are not. */
#ifndef PERFJIT_STACK_COUNTS_H
#define PERFJIT_STACK_COUNTS_H

#include "injector/arrays/number_map.h"
#include "injector/unwind/stacks/stack_walk.h"

#include <stdio.h>

/* A thread: where its stack begins, as far as a whole one showed it, and the lowest stack pointer
 * of those that were cut.  It may go on in another stack: after an exec, or of a coroutine. */
struct thread_extent {
    uint64_t top, lowest_cut; /* of the stack that it was in last; 0, UINT64_MAX: not known */
    uint64_t needed_bytes;    /* for the largest one that was cut, of any of its stacks */
};

/* The place where stacks that are not whole ended. */
struct stack_stop {
    uint32_t what; /* a file's number, or SPACE_FUNCTION: JIT code, or SPACE_NOTHING */
    uint32_t end;  /* enum stack_end */
    uint64_t count;
};

struct stack_counts {
    uint64_t ends[STACK_ENDS];
    uint64_t copied_bytes; /* the size of the copies that were cut */
    uint64_t inferred;     /* of the whole ones: their outer frames */
    uint64_t found; /* with callers that return_slot.h found; those that are cut are of them, too */
    struct thread_extent *threads;
    size_t thread_count, thread_capacity;
    struct number_map by_thread; /* numbers of these, by life, and in that by tid */
    struct stack_stop *stops;
    size_t stop_count, stop_capacity;
};

/* Count the stack of THREAD that WALKER has walked to END.  Returns 0, or -1 without memory. */
int stack_counts_add(struct stack_counts *counts, const struct stack_walker *walker,
                     uint64_t thread, enum stack_end end);

/* How large copies would have had to be for all stacks that were cut, of threads of which others
 * are whole; 0: that is not known, or those of this size are not enough either. */
uint64_t stack_counts_size(const struct stack_counts *counts);

/* How many ended in memory that may hold JIT code, of which nothing is known. */
uint64_t stack_counts_unlogged(const struct stack_counts *counts, const struct native_files *files);

/* Print a line, and one for each place where stacks ended, if VERBOSE; else for the first few. */
void stack_counts_print(struct stack_counts *counts, const struct native_files *files, bool verbose,
                        FILE *stream);

void stack_counts_free(struct stack_counts *counts);

#endif
