/* See image_plan.h. */
#include "injector/plan/image_plan.h"

#include "injector/arrays/array.h"
#include "injector/plan/foreign_maps.h"
#include "injector/plan/neighbourhood.h"

#include <string.h>

enum {
    /* libelf fills with zeros what lies in front of headers that stand behind the text: a larger
     * function that is logged without its bytes gets a page for them in front of it, and stays a
     * hole. */
    MAX_CLOSE_HOLE_BYTES = 1 << 20,
};

#define NO_GAP UINT32_MAX

/* The process whose images are planned. */
struct planner {
    struct image_plan *plan;
    const struct timeline *timeline;
    const struct jit_function *functions; /* the timeline's */
    struct function_place *places;        /* of the functions */
    uint32_t process;                    /* index */
    struct foreign_maps foreign;         /* what no image may reach over; empty: anything */
};

/* What of a function decides on its place: the functions themselves are far larger than a cache. */
struct placed {
    uint64_t addr, end;
    uint32_t function;
    uint32_t generation;
    bool same_memory;
};

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
 * reaches in; and ORDER. */
static void measure_gaps(const struct planner *planner, const struct placed *placed, size_t count,
                         uint32_t *order)
{
    uint64_t reach = 0; /* of all functions so far */
    for (size_t i = 0; i < count; i++) {
        const struct placed *it = &placed[i];
        uint64_t next = i + 1 < count ? placed[i + 1].addr : UINT64_MAX;
        uint64_t limit = it->same_memory ? NEIGHBOURHOOD_GAP_BYTES : CODE_GAP_BYTES;
        bool alone = reach <= it->end && next >= it->end && next - it->end <= limit;
        planner->places[it->function].gap_after = alone ? (uint32_t)(next - it->end) : NO_GAP;
        reach = it->end > reach ? it->end : reach;
        order[i] = it->function;
    }
}

/* How many of the COUNT functions at PLACED make one neighbourhood with the first, with nothing of
 * FOREIGN in it; *GENERATIONS receives one more than the highest generation among them. */
static size_t neighbours(const struct placed *placed, size_t count, enum image_layout layout,
                         const struct foreign_maps *foreign, uint32_t *generations)
{
    struct neighbourhood those = {0};
    size_t most = layout == LAYOUT_FUNCTION ? 1 : count;
    *generations = 0;
    for (size_t i = 0; i < most; i++) {
        if (i && foreign_maps_has_within(foreign, those.reach, placed[i].addr))
            break;
        if (!neighbourhood_take(&those, placed[i].addr, placed[i].end))
            break;
        if (placed[i].generation >= *generations)
            *generations = placed[i].generation + 1;
    }
    return those.count;
}

static struct jit_image *add_image(const struct planner *planner)
{
    struct image_plan *plan = planner->plan;
    struct jit_image *images =
        array_room(plan->images, plan->image_count, &plan->image_capacity, sizeof *images);
    if (!images || plan->image_count >= NO_IMAGE)
        return NULL;
    plan->images = images;
    struct jit_image *image = &images[plan->image_count++];
    *image = (struct jit_image){.process = planner->process, .log = planner->timeline->log};
    return image;
}

/* Function INDEX is in image NUMBER.  text_end is an address until the image is placed. */
static void put_into(const struct planner *planner, uint32_t number, uint32_t index)
{
    struct jit_image *image = &planner->plan->images[number];
    const struct jit_function *function = &planner->functions[index];
    uint64_t end = function->addr + function->size;
    if (end > image->text_end)
        image->text_end = end;
    image->names_bytes += function->name_bytes + (uint64_t)1;
    planner->places[index].image = number;
}

uint64_t image_plan_base(uint64_t addr)
{
    return addr / IMAGE_PAGE_BYTES * IMAGE_PAGE_BYTES - IMAGE_PAGE_BYTES;
}

/* An image that is CLOSE to another one gets no more than an ELF header in front of it: libdw takes
 * all from there to the text's end for one module, and modules that are on one stack must not
 * overlap. */
static void place(struct jit_image *image, const struct jit_function *functions, bool close)
{
    const struct jit_function *lowest = &functions[image->functions[0]];
    bool hole = image->function_count == 1 && !lowest->code && lowest->size > MAX_CLOSE_HOLE_BYTES;
    image->base =
        close && !hole ? lowest->addr - IMAGE_ELF_HEADER_BYTES : image_plan_base(lowest->addr);
    image->text_start = lowest->addr - image->base;
    image->text_end -= image->base;
}

struct generation {
    size_t count;
    size_t next; /* where its next function goes */
    uint32_t image;
};

/* An image for each generation that occurs; ORDER is where their functions will stand. */
static int open_images(const struct planner *planner, struct generation *generations, size_t count,
                       const uint32_t *order)
{
    size_t next = 0;
    for (size_t g = 0; g < count; g++) {
        if (generations[g].count == 0)
            continue;
        struct jit_image *image = add_image(planner);
        if (!image)
            return -1;
        image->functions = order + next;
        image->function_count = generations[g].count;
        generations[g].image = (uint32_t)(planner->plan->image_count - 1);
        generations[g].next = next;
        next += generations[g].count;
    }
    return 0;
}

/* Deal the COUNT neighbours at ORDER out to images by their generation; each image's stay sorted by
 * address. */
static void deal_out(const struct planner *planner, uint32_t *order, size_t count,
                     struct generation *generations, uint32_t *dealt)
{
    for (size_t i = 0; i < count; i++) {
        struct generation *generation =
            &generations[planner->timeline->states[order[i]].generation];
        dealt[generation->next++] = order[i];
        put_into(planner, generation->image, order[i]);
    }
    memcpy(order, dealt, count * sizeof *dealt);
}

/* Most neighbourhoods are of one generation. */
static int add_one_image(const struct planner *planner, const uint32_t *order, size_t count,
                         bool close)
{
    struct jit_image *image = add_image(planner);
    if (!image)
        return -1;
    image->functions = order;
    image->function_count = count;
    for (size_t i = 0; i < count; i++)
        put_into(planner, (uint32_t)(planner->plan->image_count - 1), order[i]);
    place(image, planner->functions, close || count == 1);
    return 0;
}

static int add_generations(const struct planner *planner, uint32_t *order, size_t count,
                           uint32_t generation_count)
{
    struct image_plan *plan = planner->plan;
    struct generation *generations = calloc(generation_count, sizeof *generations);
    uint32_t *dealt = malloc(count * sizeof *dealt);
    size_t first_image = plan->image_count;
    int result = -1;
    for (size_t i = 0; generations && i < count; i++)
        generations[planner->timeline->states[order[i]].generation].count++;
    if (generations && dealt)
        result = open_images(planner, generations, generation_count, order);
    if (!result)
        deal_out(planner, order, count, generations, dealt);
    for (size_t i = first_image; !result && i < plan->image_count; i++)
        place(&plan->images[i], planner->functions, plan->images[i].function_count == 1);
    free(generations);
    free(dealt);
    return result;
}

/* How many of the COUNT functions at ORDER make one image: those in front of the next that
 * shares addresses with another, or that one.  REACH: how far the functions in front of them go;
 * moved on. */
static size_t run_without_sharing(const struct jit_function *functions, const uint32_t *order,
                                  size_t count, uint64_t *reach)
{
    size_t taken = 0;
    for (bool shares = false; taken < count && !shares; taken++) {
        const struct jit_function *function = &functions[order[taken]];
        uint64_t end = function->addr + function->size;
        shares = function->addr < *reach ||
                 (taken + 1 < count && functions[order[taken + 1]].addr < end);
        if (shares && taken)
            break;
        *reach = end > *reach ? end : *reach;
    }
    return taken;
}

/* Images whose address ranges are disjoint, but for those of functions that share addresses. CLOSE:
 * something lies right in front of the first one. */
static int add_apart(const struct planner *planner, const uint32_t *order, size_t count, bool close)
{
    uint64_t reach = 0;
    for (size_t at = 0, taken; at < count; at += taken) {
        taken = run_without_sharing(planner->functions, order + at, count - at, &reach);
        if (add_one_image(planner, order + at, taken, close || at > 0))
            return -1;
    }
    return 0;
}

/* The COUNT functions at PLACED, whose numbers stand at ORDER, are in no image yet. */
static int add_images(const struct planner *planner, const struct placed *placed, uint32_t *order,
                      size_t count, enum image_layout layout)
{
    measure_gaps(planner, placed, count, order);
    for (size_t at = 0, taken; at < count; at += taken) {
        uint32_t generations;
        taken = neighbours(placed + at, count - at, layout, &planner->foreign, &generations);
        uint64_t addr = placed[at].addr;
        bool close = foreign_maps_reach_into(&planner->foreign, image_plan_base(addr), addr);
        bool apart = taken == 1 || (layout == LAYOUT_APART && generations > 1);
        if (apart              ? add_apart(planner, order + at, taken, close)
            : generations == 1 ? add_one_image(planner, order + at, taken, close)
                               : add_generations(planner, order + at, taken, generations))
            return -1;
    }
    return 0;
}

/* Room for what is planned of one more process, COUNT of whose FUNCTION_COUNT functions are
 * visible; each is in no image yet.  NULL without memory. */
static struct process_plan *add_process(struct image_plan *plan, size_t function_count,
                                        size_t count)
{
    struct process_plan *processes = array_room(plan->processes, plan->process_count,
                                                &plan->process_capacity, sizeof *processes);
    if (!processes)
        return NULL;
    plan->processes = processes;
    struct process_plan *process = &processes[plan->process_count++];
    *process = (struct process_plan){
        .places = malloc((function_count + 1) * sizeof *process->places),
        .order = malloc((count + 1) * sizeof *process->order),
        .first_image = plan->image_count,
        .end_image = plan->image_count,
    };
    for (size_t i = 0; process->places && i < function_count; i++)
        process->places[i] = (struct function_place){NO_IMAGE, NO_GAP};
    return process->places && process->order ? process : NULL;
}

int image_plan_add(struct image_plan *plan, const struct jit_process *process,
                   const struct timeline *timeline, enum image_layout layout,
                   struct findings *findings)
{
    size_t count;
    struct placed *placed = sort_by_address(timeline, &count);
    struct process_plan *planned =
        placed ? add_process(plan, timeline->log->function_count, count) : NULL;
    int result = -1;
    if (planned) {
        struct planner planner = {plan,
                                  timeline,
                                  timeline->log->functions,
                                  planned->places,
                                  (uint32_t)(plan->process_count - 1),
                                  {0}};
        result = layout == LAYOUT_APART ? foreign_maps_open(&planner.foreign, process) : 0;
        if (!result)
            result = add_images(&planner, placed, planned->order, count, layout);
        foreign_maps_free(&planner.foreign);
        planned->end_image = plan->image_count;
    }
    free(placed);
    return result ? report_failure(findings, "out of memory") : 0;
}

void image_plan_free(struct image_plan *plan)
{
    for (size_t i = 0; i < plan->process_count; i++) {
        free(plan->processes[i].places);
        free(plan->processes[i].order);
    }
    free(plan->processes);
    free(plan->images);
}
