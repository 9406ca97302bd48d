/* See two_programs.h. */
#include "injector/compare/two_programs.h"

#include <stdio.h>
#include <stdlib.h>

/* The share of all time in functions that both sides have, below which these are two programs. */
static const double least_common = 0.1;

/* The share of all time in JIT code, below which it is too little to tell that of. */
static const double least_jit = 0.1;

/* The first run's of a side. */
static uint32_t process_of(const struct run_set *set, bool is_new)
{
    for (size_t i = 0; i < set->run_count; i++)
        if (set->runs[i].is_new == is_new)
            return set->runs[i].process;
    return 0;
}

static bool has_process(const struct run_set *set, bool is_new, uint32_t process)
{
    for (size_t i = 0; i < set->run_count; i++)
        if (set->runs[i].is_new == is_new && set->runs[i].process == process)
            return true;
    return false;
}

static bool share_a_process(const struct run_set *set)
{
    for (size_t i = 0; i < set->run_count; i++)
        if (has_process(set, !set->runs[i].is_new, set->runs[i].process))
            return true;
    return false;
}

/* Which functions are compared: the kernel's are the same in all programs. */
static bool counts(enum frame_kind kind, bool jit_only)
{
    return jit_only ? kind == FRAME_JIT : kind != FRAME_KERNEL;
}

/* By function: the time of a side's runs in it.  NULL without memory; to be freed. */
static double *sums_of(const struct run_set *set, bool is_new, bool jit_only)
{
    double *sums = calloc(run_set_count(set, BY_FUNCTION) + 1, sizeof *sums);
    for (size_t i = 0; sums && i < set->run_count; i++) {
        const struct run_values *states = &set->runs[i].tables[BY_STATE];
        for (size_t k = 0; set->runs[i].is_new == is_new && k < set->names.frame_count; k++)
            if (k < states->count && counts(set->names.frames[k].kind, jit_only))
                sums[set->function_of[k]] += states->items[k];
    }
    return sums;
}

/* Both sides' time. */
struct shared_time {
    double common, all; /* in functions which both have, and in all */
};

/* Returns 0, or -1 without memory. */
static int share_time(struct shared_time *time, const struct run_set *set, bool jit_only)
{
    double *base = sums_of(set, false, jit_only), *new = sums_of(set, true, jit_only);
    int result = base && new ? 0 : -1;
    *time = (struct shared_time){0, 0};
    for (size_t i = 0; result == 0 && i < run_set_count(set, BY_FUNCTION); i++) {
        time->all += base[i] + new[i];
        time->common += base[i] > 0 && new[i] > 0 ? base[i] + new[i] : 0;
    }
    free(base);
    free(new);
    return result;
}

static double percent_of(struct shared_time time)
{
    return 100 * time.common / time.all;
}

int two_programs_tell(struct run_set *set)
{
    char *text = NULL;
    struct shared_time all, jit;
    int bytes = 0;
    if (share_time(&all, set, false) || share_time(&jit, set, true))
        return -1;
    if (!share_a_process(set))
        bytes = asprintf(&text,
                         "warning: the sides ran different programs, %s and %s: they differ by "
                         "more than one change; give two builds of one program the same file name, "
                         "in two directories: functions are matched by it",
                         call_profile_string(&set->names, process_of(set, false)),
                         call_profile_string(&set->names, process_of(set, true)));
    else if (all.common < least_common * all.all)
        bytes = asprintf(&text,
                         "warning: the sides have %.0f %% of their time in functions that both "
                         "have: they may be different programs",
                         percent_of(all));
    else if (jit.all >= least_jit * all.all && jit.common < least_common * jit.all)
        bytes = asprintf(&text,
                         "warning: the sides have %.0f %% of their JIT code's time in functions "
                         "that both have; give the source files of both the same names, in two "
                         "directories: functions are matched by them",
                         percent_of(jit));
    if (bytes <= 0)
        return bytes;
    int result = run_set_add_note(set, text);
    free(text);
    return result;
}
