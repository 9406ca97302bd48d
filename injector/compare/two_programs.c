/* See two_programs.h. */
#include "injector/compare/two_programs.h"

#include <stdio.h>
#include <stdlib.h>

/* The share of all time in functions that both sides have, below which these are two programs. */
static const double least_common = 0.1;

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

/* By function: the time of a side's runs in it, without the kernel, which all programs have in
 * common.  NULL without memory; to be freed. */
static double *sums_of(const struct run_set *set, bool is_new)
{
    double *sums = calloc(run_set_count(set, BY_FUNCTION) + 1, sizeof *sums);
    for (size_t i = 0; sums && i < set->run_count; i++) {
        const struct run_values *states = &set->runs[i].tables[BY_STATE];
        for (size_t k = 0; set->runs[i].is_new == is_new && k < set->names.frame_count; k++)
            if (k < states->count && set->names.frames[k].kind != FRAME_KERNEL)
                sums[set->function_of[k]] += states->items[k];
    }
    return sums;
}

/* The share of both sides' time that is in functions which both have; negative without memory. */
static double common_share(const struct run_set *set)
{
    double *base = sums_of(set, false), *new = sums_of(set, true), common = 0, all = 0;
    for (size_t i = 0; base && new &&i < run_set_count(set, BY_FUNCTION); i++) {
        all += base[i] + new[i];
        common += base[i] > 0 && new[i] > 0 ? base[i] + new[i] : 0;
    }
    double share = !base || !new ? -1 : all > 0 ? common / all : 1;
    free(base);
    free(new);
    return share;
}

int two_programs_tell(struct run_set *set)
{
    char *text = NULL;
    double share = common_share(set);
    int bytes = 0;
    if (share < 0)
        return -1;
    if (!share_a_process(set))
        bytes = asprintf(&text,
                         "warning: the sides ran different programs, %s and %s: they differ by "
                         "more than one change; give two builds of one program the same file name, "
                         "in two directories: functions are matched by it",
                         call_profile_string(&set->names, process_of(set, false)),
                         call_profile_string(&set->names, process_of(set, true)));
    else if (share < least_common)
        bytes = asprintf(&text,
                         "warning: the sides have %.0f %% of their time in functions that both "
                         "have: they may be different programs",
                         100 * share);
    if (bytes <= 0)
        return bytes;
    int result = run_set_add_note(set, text);
    free(text);
    return result;
}
