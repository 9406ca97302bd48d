/* Runs of two sides, and how much of each run each function has itself. */
#ifndef PERFJIT_RUN_SET_H
#define PERFJIT_RUN_SET_H

#include "injector/profile/profile_totals.h"

struct compared_run {
    double *values; /* by function's number in NAMES; those of later numbers are 0 */
    size_t count;
    bool is_new;
};

struct run_set {
    struct call_profile names; /* its strings alone: what a function is called in all runs */
    struct compared_run *runs;
    size_t run_count, run_capacity;
    size_t base, new;
    char **notes; /* what has to be known of the runs, whatever comes out: lines */
    size_t note_count, note_capacity;
};

/* Returns 0, or -1 without memory.  Release with run_set_free in either case. */
int run_set_begin(struct run_set *set);

/* Add a run.  A function is the same in two runs if its name, file and source file are, without
 * directories: JIT code's file has another name in each run, tiers change, and lines move.  Returns
 * 0, or -1 without memory. */
int run_set_add(struct run_set *set, bool is_new, const struct call_profile *profile,
                const struct profile_functions *functions, const struct profile_totals *totals);

/* Add a copy of the line TEXT.  Returns 0, or -1 without memory. */
int run_set_add_note(struct run_set *set, const char *text);

/* How many functions there are; number 0 is none's. */
static inline size_t run_set_functions(const struct run_set *set)
{
    return set->names.string_count;
}

void run_set_free(struct run_set *set);

#endif
