/* Runs of two sides, and how much of each run each function has itself.  That time is split by the
 * function's state, the run's activity, and the stack. */
#ifndef PERFJIT_RUN_SET_H
#define PERFJIT_RUN_SET_H

#include "injector/compare/function_lines.h"
#include "injector/profile/activity.h"
#include "injector/profile/flamegraph/flamegraph_page.h"
#include "injector/profile/profile_totals.h"

/* What a run's values are by.  The values of each table in front of BY_LINE add up to the run's
 * total. */
enum run_table {
    BY_FUNCTION,    /* a string of NAMES: the function's name in all runs */
    BY_STATE,       /* a frame of NAMES: a function in a tier, interpreted, inlined */
    BY_ACTIVITY,    /* an enum activity */
    BY_STACK,       /* a node of NAMES, by itself */
    BY_LINE,        /* a string: a line of one function, whose values they add up to */
    BY_INSTRUCTION, /* a string: an offset in its code, in each of its states */
    RUN_TABLES
};

struct run_values {
    double *items; /* by number; those of later numbers are 0 */
    size_t count;
};

struct compared_run {
    struct run_values tables[RUN_TABLES];
    uint32_t process; /* the name of the process that has most of it: a string of NAMES */
    bool is_new;
};

/* Which sides have something. */
enum { BASE_SIDE = 1, NEW_SIDE = 2, BOTH_SIDES = BASE_SIDE | NEW_SIDE };

struct run_set {
    /* The names that all runs have in common: strings, frames in their states, stacks of these
     * frames.  Frames are without the parts that differ from run to run: lines, directories, the
     * JIT code's file.  Where a column is known, they have the line and it (same_functions.h). */
    struct call_profile names;
    uint32_t *function_of; /* by frame of NAMES: its function, a string */
    uint8_t *sides_of;     /* by frame of NAMES: the sides that have it */
    size_t function_of_capacity, sides_capacity;
    struct compared_run *runs;
    size_t run_count, run_capacity;
    size_t base, new;
    bool keeps_times;                /* of samples: set it before runs are added */
    size_t untimed;                  /* runs whose samples have no times */
    struct flamegraph_sample *times; /* by run */
    size_t time_count, time_capacity;
    struct function_lines lines; /* of JIT code, all runs of a side as one */
    const char *lines_of; /* the function of BY_LINE and BY_INSTRUCTION; NULL: none was chosen */
    bool lines_found;     /* a run has it */
    char **notes;         /* remarks about the runs, whatever the result: lines */
    size_t note_count, note_capacity;
};

/* Returns 0, or -1 without memory.  Release with run_set_free in either case. */
int run_set_begin(struct run_set *set);

/* Add a run: CHOICE's part of PROFILE.  A function is the same in two runs if its name, file and
 * source file are, without directories: JIT code's file has another name in each run, tiers change,
 * and lines move.  Returns 0, or -1 without memory. */
int run_set_add(struct run_set *set, bool is_new, const struct call_profile *profile,
                const struct profile_choice *choice);

/* Add a copy of the line TEXT, printable.  Returns 0, or -1 without memory. */
int run_set_add_note(struct run_set *set, const char *text);

/* The name of FRAME, which is of SET's names, as a function: "name  file", and where it begins if
 * it has a column.  A string of SET's names; PROFILE_NOTHING without memory. */
uint32_t run_set_name_function(struct run_set *set, const struct call_frame *frame);

/* Add the stacks of PROFILE, whose frames are FRAMES in SET's names; NODES, as many as PROFILE's,
 * becomes what they are there.  The first, which is no stack, is 0.  Returns 0, or -1 without
 * memory. */
int run_set_add_stacks(struct run_set *set, const struct call_profile *profile,
                       const uint32_t *frames, uint32_t *nodes);

/* How many numbers TABLE has; of strings and stacks, number 0 is none's. */
size_t run_set_count(const struct run_set *set, enum run_table table);

void run_set_free(struct run_set *set);

#endif
