/* See profile_totals.h. */
#include "injector/profile/profile_totals.h"

#include <stdlib.h>

bool profile_choice_has(const struct profile_choice *choice, const struct call_profile *profile,
                        const struct call_sample *sample)
{
    return (choice->event == PROFILE_ALL || choice->event == sample->event) &&
           (choice->pid == PROFILE_ALL || choice->pid == profile->threads[sample->thread].pid);
}

uint64_t profile_choice_weight(const struct profile_choice *choice,
                               const struct call_sample *sample)
{
    return choice->weight == WEIGHT_PERIOD ? sample->period : 1;
}

/* Whether a caller of NODE is a frame of FUNCTION, too. */
static bool is_within(const struct call_profile *profile, const struct profile_functions *functions,
                      uint32_t node, uint32_t function)
{
    for (node = profile->nodes[node].parent; node; node = profile->nodes[node].parent)
        if (functions->of_frame[profile->nodes[node].frame] == function)
            return true;
    return false;
}

static void count_nodes(struct profile_totals *totals, const struct call_profile *profile,
                        const struct profile_choice *choice)
{
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct call_sample *sample = &profile->samples[i];
        if (!profile_choice_has(choice, profile, sample))
            continue;
        uint64_t weight = profile_choice_weight(choice, sample);
        totals->of_node[sample->node] += weight;
        totals->below_node[sample->node] += weight;
        totals->all += weight;
    }
    for (size_t i = profile->node_count; i-- > 1;)
        totals->below_node[profile->nodes[i].parent] += totals->below_node[i];
}

int profile_totals_count(struct profile_totals *totals, const struct call_profile *profile,
                         const struct profile_functions *functions,
                         const struct profile_choice *choice)
{
    *totals = (struct profile_totals){.all = 0};
    totals->of_node = calloc(profile->node_count + 1, sizeof(uint64_t));
    totals->below_node = calloc(profile->node_count + 1, sizeof(uint64_t));
    totals->self = calloc(profile->frame_count + 1, sizeof(uint64_t));
    totals->function_self = calloc(functions->count + 1, sizeof(uint64_t));
    totals->function_total = calloc(functions->count + 1, sizeof(uint64_t));
    if (!totals->of_node || !totals->below_node || !totals->self || !totals->function_self ||
        !totals->function_total)
        return -1;
    count_nodes(totals, profile, choice);
    for (uint32_t i = 1; i < profile->node_count; i++) {
        uint32_t frame = profile->nodes[i].frame, function = functions->of_frame[frame];
        if (!totals->below_node[i])
            continue;
        totals->self[frame] += totals->of_node[i];
        totals->function_self[function] += totals->of_node[i];
        if (!is_within(profile, functions, i, function))
            totals->function_total[function] += totals->below_node[i];
    }
    return 0;
}

void profile_totals_free(struct profile_totals *totals)
{
    free(totals->of_node);
    free(totals->below_node);
    free(totals->self);
    free(totals->function_self);
    free(totals->function_total);
    *totals = (struct profile_totals){0};
}
