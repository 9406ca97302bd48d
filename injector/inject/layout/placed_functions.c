/* See placed_functions.h. */
#include "injector/inject/layout/placed_functions.h"

#include "injector/arrays/array.h"
#include "injector/inject/layout/neighbourhood.h"

/* By address, and stable. */
static int compare_placed(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;
    if (a->addr != b->addr)
        return a->addr < b->addr ? -1 : 1;
    return a->function < b->function ? -1 : a->function > b->function;
}

/* The visible functions of TIMELINE by address, *COUNT of them.  NULL without memory. */
static struct placed *sort_by_address(const struct timeline *timeline, size_t *count)
{
    const struct code_log *log = timeline->log;
    const struct function_state *states = timeline->states;
    struct placed *placed = malloc((log->function_count + 1) * sizeof *placed);
    *count = 0;
    if (!placed)
        return NULL;
    for (size_t i = 0; i < log->function_count; i++) {
        const struct jit_function *function = &log->functions[i];
        if (states[i].visible)
            placed[(*count)++] =
                (struct placed){function->addr, function->addr + function->size, (uint32_t)i,
                                states[i].generation, function->same_memory};
    }
    if (!array_in_order(placed, *count, sizeof *placed, compare_placed))
        qsort(placed, *count, sizeof *placed, compare_placed);
    return placed;
}

/* Set gap_after: from a function's end to the next one's start, where no other function lies or
 * reaches in. */
static void measure_gaps(struct function_place *places, const struct placed_functions *placed)
{
    uint64_t reach = 0; /* of all functions so far */
    for (size_t i = 0; i < placed->count; i++) {
        const struct placed *it = &placed->items[i];
        uint64_t next = i + 1 < placed->count ? placed->items[i + 1].addr : UINT64_MAX;
        uint64_t limit = it->same_memory ? NEIGHBOURHOOD_GAP_BYTES : CODE_GAP_BYTES;
        bool alone = reach <= it->end && next >= it->end && next - it->end <= limit;
        places[it->function].gap_after = alone ? (uint32_t)(next - it->end) : NO_GAP;
        reach = it->end > reach ? it->end : reach;
    }
}

/* Room for the plan of one more process, with FUNCTION_COUNT functions, each in no image yet.  NULL
 * without memory. */
static struct process_plan *add_process(struct image_plan *plan, size_t function_count)
{
    if (array_reserve(plan->processes, plan->process_count, plan->process_capacity))
        return NULL;
    struct process_plan *process = &plan->processes[plan->process_count++];
    *process = (struct process_plan){
        .places = malloc((function_count + 1) * sizeof *process->places),
        .first_image = plan->image_count,
        .end_image = plan->image_count,
    };
    for (size_t i = 0; process->places && i < function_count; i++)
        process->places[i] = (struct function_place){0, NO_IMAGE, NO_GAP};
    return process->places ? process : NULL;
}

struct process_plan *placed_functions_open(struct placed_functions *placed, struct image_plan *plan,
                                           const struct timeline *timeline)
{
    placed->items = sort_by_address(timeline, &placed->count);
    struct process_plan *planned =
        placed->items ? add_process(plan, timeline->log->function_count) : NULL;
    if (planned)
        measure_gaps(planned->places, placed);
    return planned;
}
