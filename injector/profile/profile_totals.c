/* See profile_totals.h. */
#include "injector/profile/profile_totals.h"

#include <stdlib.h>

static void count_nodes(struct profile_totals *totals, const struct call_profile *profile,
                        const struct profile_choice *choice)
{
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct call_sample *sample = &profile->samples[i];
        if (!profile_choice_has(choice, sample))
            continue;
        uint64_t weight = profile_choice_weight(choice, sample);
        totals->of_node[sample->node] += weight;
        totals->below_node[sample->node] += weight;
        totals->all += weight;
    }
    for (size_t i = profile->node_count; i-- > 1;)
        totals->below_node[profile->nodes[i].parent] += totals->below_node[i];
}

/* ---- Recursion ---- */

/* A walk over all nodes, callers first, that knows which of each function's nodes are around it. */
struct node_walk {
    uint32_t *first, *next; /* children of a node, and of its parent */
    uint32_t *at;           /* by node: the child that the walk is in */
    uint32_t *around;       /* by node: the next one of the same function further out, or 0 */
    uint32_t *last;         /* by function: the innermost one now, or 0 */
};

static int walk_begin(struct node_walk *walk, const struct call_profile *profile,
                      const struct profile_functions *functions)
{
    walk->first = calloc(profile->node_count + 1, sizeof *walk->first);
    walk->next = calloc(profile->node_count + 1, sizeof *walk->next);
    walk->at = calloc(profile->node_count + 1, sizeof *walk->at);
    walk->around = calloc(profile->node_count + 1, sizeof *walk->around);
    walk->last = calloc(functions->count + 1, sizeof *walk->last);
    if (!walk->first || !walk->next || !walk->at || !walk->around || !walk->last)
        return -1;
    for (uint32_t i = (uint32_t)profile->node_count; i-- > 1;) {
        walk->next[i] = walk->first[profile->nodes[i].parent];
        walk->first[profile->nodes[i].parent] = i;
    }
    return 0;
}

static void walk_end(struct node_walk *walk)
{
    free(walk->first);
    free(walk->next);
    free(walk->at);
    free(walk->around);
    free(walk->last);
}

/* NODE is of FUNCTION, and the nodes around it, if any, are too. */
static void enter(struct node_walk *walk, struct profile_totals *totals, uint32_t node,
                  uint32_t function)
{
    uint32_t around = walk->around[node] = walk->last[function];
    walk->last[function] = node;
    if (!around) {
        totals->function_total[function] += totals->below_node[node];
        return;
    }
    totals->innermost[around] -= totals->below_node[node];
    totals->called[walk->at[around]] -= totals->below_node[node];
}

static void walk_go(struct node_walk *walk, struct profile_totals *totals,
                    const struct call_profile *profile, const struct profile_functions *functions)
{
    uint32_t node = 0;
    while (true) {
        uint32_t child = walk->at[node] ? walk->next[walk->at[node]] : walk->first[node];
        if (child) {
            walk->at[node] = child;
            node = child;
            enter(walk, totals, node, functions->of_frame[profile->nodes[node].frame]);
        } else if (node) {
            walk->last[functions->of_frame[profile->nodes[node].frame]] = walk->around[node];
            node = profile->nodes[node].parent;
        } else {
            return;
        }
    }
}

/* In time that grows with the nodes, however deep their stacks are. */
static int count_functions(struct profile_totals *totals, const struct call_profile *profile,
                           const struct profile_functions *functions)
{
    struct node_walk walk;
    int result = walk_begin(&walk, profile, functions);
    for (size_t i = 0; i < profile->node_count; i++)
        totals->innermost[i] = totals->called[i] = totals->below_node[i];
    for (size_t i = 1; i < profile->node_count; i++) {
        totals->self[profile->nodes[i].frame] += totals->of_node[i];
        totals->function_self[functions->of_frame[profile->nodes[i].frame]] += totals->of_node[i];
    }
    if (!result)
        walk_go(&walk, totals, profile, functions);
    walk_end(&walk);
    for (size_t i = 1; i < profile->node_count; i++)
        totals->stood[profile->nodes[i].frame] += totals->innermost[i];
    return result;
}

int profile_totals_count(struct profile_totals *totals, const struct call_profile *profile,
                         const struct profile_functions *functions,
                         const struct profile_choice *choice)
{
    *totals = (struct profile_totals){.all = 0};
    totals->of_node = calloc(profile->node_count + 1, sizeof(uint64_t));
    totals->below_node = calloc(profile->node_count + 1, sizeof(uint64_t));
    totals->self = calloc(profile->frame_count + 1, sizeof(uint64_t));
    totals->stood = calloc(profile->frame_count + 1, sizeof(uint64_t));
    totals->function_self = calloc(functions->count + 1, sizeof(uint64_t));
    totals->function_total = calloc(functions->count + 1, sizeof(uint64_t));
    totals->innermost = calloc(profile->node_count + 1, sizeof(uint64_t));
    totals->called = calloc(profile->node_count + 1, sizeof(uint64_t));
    if (!totals->of_node || !totals->below_node || !totals->self || !totals->stood ||
        !totals->function_self || !totals->function_total || !totals->innermost || !totals->called)
        return -1;
    count_nodes(totals, profile, choice);
    return count_functions(totals, profile, functions);
}

void profile_totals_free(struct profile_totals *totals)
{
    free(totals->of_node);
    free(totals->below_node);
    free(totals->innermost);
    free(totals->called);
    free(totals->self);
    free(totals->stood);
    free(totals->function_self);
    free(totals->function_total);
    *totals = (struct profile_totals){0};
}
