/* See image_plan.h. */
#include "injector/inject/layout/image_plan.h"

#include "injector/arrays/array.h"
#include "injector/inject/layout/foreign_maps.h"
#include "injector/inject/layout/neighbourhood.h"
#include "injector/inject/layout/placed_functions.h"

#include <string.h>

enum {
    /* libelf fills the bytes in front of headers after the text with zeros.  A larger function that
     * is logged without its bytes gets a page for its headers in front of it, and stays a hole. */
    MAX_CLOSE_HOLE_BYTES = 1 << 20,
};

/* The process whose images are planned. */
struct planner {
    struct image_plan *plan;
    const struct timeline *timeline;
    const struct jit_function *functions; /* the timeline's */
    struct function_place *places;        /* of the functions */
    uint32_t process;                     /* index */
    struct foreign_maps foreign;          /* ranges that no image may reach over; empty: none */
};

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
    if (array_reserve(plan->images, plan->image_count, plan->image_capacity) ||
        plan->image_count >= NO_IMAGE)
        return NULL;
    struct jit_image *image = &plan->images[plan->image_count++];
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

/* An image that is CLOSE to another one gets no more than an ELF header in front of it.  The reason
 * is libdw's module, which reaches from there to the text's end.  Modules that are on one stack
 * must not overlap. */
static void place(const struct planner *planner, struct jit_image *image, bool close)
{
    const struct jit_function *functions = planner->functions;
    const struct jit_function *lowest = &functions[image->bodies[0].number];
    bool hole = image->body_count == 1 && !lowest->code && lowest->size > MAX_CLOSE_HOLE_BYTES;
    image->base =
        close && !hole ? lowest->addr - IMAGE_ELF_HEADER_BYTES : image_plan_base(lowest->addr);
    image->text_start = lowest->addr - image->base;
    image->text_end -= image->base;
    for (size_t i = 0; i < image->body_count; i++) {
        struct image_body *body = &image->bodies[i];
        body->offset = functions[body->number].addr - image->base;
        planner->places[body->number].offset = body->offset;
    }
}

struct generation {
    size_t count;
    size_t next; /* where its next function goes */
    uint32_t image;
};

/* An image for each generation that occurs; BODIES is where their functions will stand. */
static int open_images(const struct planner *planner, struct generation *generations, size_t count,
                       struct image_body *bodies)
{
    size_t next = 0;
    for (size_t g = 0; g < count; g++) {
        if (generations[g].count == 0)
            continue;
        struct jit_image *image = add_image(planner);
        if (!image)
            return -1;
        image->bodies = bodies + next;
        image->body_count = generations[g].count;
        generations[g].image = (uint32_t)(planner->plan->image_count - 1);
        generations[g].next = next;
        next += generations[g].count;
    }
    return 0;
}

/* Deal the COUNT neighbours at BODIES out to images by their generation; each image's stay sorted
 * by address. */
static void deal_out(const struct planner *planner, struct image_body *bodies, size_t count,
                     struct generation *generations, struct image_body *dealt)
{
    for (size_t i = 0; i < count; i++) {
        struct generation *generation =
            &generations[planner->timeline->states[bodies[i].number].generation];
        dealt[generation->next++] = bodies[i];
        put_into(planner, generation->image, bodies[i].number);
    }
    memcpy(bodies, dealt, count * sizeof *dealt);
}

/* Most neighbourhoods are of one generation. */
static int add_one_image(const struct planner *planner, struct image_body *bodies, size_t count,
                         bool close)
{
    struct jit_image *image = add_image(planner);
    if (!image)
        return -1;
    image->bodies = bodies;
    image->body_count = count;
    for (size_t i = 0; i < count; i++)
        put_into(planner, (uint32_t)(planner->plan->image_count - 1), bodies[i].number);
    place(planner, image, close || count == 1);
    return 0;
}

static int add_generations(const struct planner *planner, struct image_body *bodies, size_t count,
                           uint32_t generation_count)
{
    struct image_plan *plan = planner->plan;
    struct generation *generations = calloc(generation_count, sizeof *generations);
    struct image_body *dealt = malloc(count * sizeof *dealt);
    size_t first_image = plan->image_count;
    int result = -1;
    for (size_t i = 0; generations && i < count; i++)
        generations[planner->timeline->states[bodies[i].number].generation].count++;
    if (generations && dealt)
        result = open_images(planner, generations, generation_count, bodies);
    if (!result)
        deal_out(planner, bodies, count, generations, dealt);
    for (size_t i = first_image; !result && i < plan->image_count; i++)
        place(planner, &plan->images[i], plan->images[i].body_count == 1);
    free(generations);
    free(dealt);
    return result;
}

/* How many of the COUNT functions at BODIES make one image: those in front of the next that
 * shares addresses with another, or that one.  REACH: how far the functions in front of them go;
 * moved on. */
static size_t run_without_sharing(const struct jit_function *functions, struct image_body *bodies,
                                  size_t count, uint64_t *reach)
{
    size_t taken = 0;
    for (bool shares = false; taken < count && !shares; taken++) {
        const struct jit_function *function = &functions[bodies[taken].number];
        uint64_t end = function->addr + function->size;
        shares = function->addr < *reach ||
                 (taken + 1 < count && functions[bodies[taken + 1].number].addr < end);
        if (shares && taken)
            break;
        *reach = end > *reach ? end : *reach;
    }
    return taken;
}

/* Images whose address ranges are disjoint, but for those of functions that share addresses. CLOSE:
 * something lies right in front of the first one. */
static int add_apart(const struct planner *planner, struct image_body *bodies, size_t count,
                     bool close)
{
    uint64_t reach = 0;
    for (size_t at = 0, taken; at < count; at += taken) {
        taken = run_without_sharing(planner->functions, bodies + at, count - at, &reach);
        if (add_one_image(planner, bodies + at, taken, close || at > 0))
            return -1;
    }
    return 0;
}

/* The COUNT functions at PLACED, whose numbers stand at BODIES, are in no image yet. */
static int add_images(const struct planner *planner, const struct placed *placed,
                      struct image_body *bodies, size_t count, enum image_layout layout)
{
    for (size_t at = 0, taken; at < count; at += taken) {
        uint32_t generations;
        taken = neighbours(placed + at, count - at, layout, &planner->foreign, &generations);
        uint64_t addr = placed[at].addr;
        bool close = foreign_maps_reach_into(&planner->foreign, image_plan_base(addr), addr);
        bool apart = taken == 1 || (layout == LAYOUT_APART && generations > 1);
        if (apart              ? add_apart(planner, bodies + at, taken, close)
            : generations == 1 ? add_one_image(planner, bodies + at, taken, close)
                               : add_generations(planner, bodies + at, taken, generations))
            return -1;
    }
    return 0;
}

int image_plan_add(struct image_plan *plan, const struct jit_process *process,
                   const struct timeline *timeline, enum image_layout layout,
                   struct findings *findings)
{
    struct placed_functions placed;
    struct process_plan *planned = placed_functions_open(&placed, plan, timeline);
    int result = -1;
    if (planned) {
        struct planner planner = {plan,
                                  timeline,
                                  timeline->log->functions,
                                  planned->places,
                                  (uint32_t)(plan->process_count - 1),
                                  {0}};
        planned->bodies = malloc((placed.count + 1) * sizeof *planned->bodies);
        for (size_t i = 0; planned->bodies && i < placed.count; i++)
            planned->bodies[i] =
                (struct image_body){.function = &planner.functions[placed.items[i].function],
                                    .process = planner.process,
                                    .number = placed.items[i].function};
        result = planned->bodies ? 0 : -1;
        if (!result && layout == LAYOUT_APART)
            result = foreign_maps_open(&planner.foreign, process);
        if (!result)
            result = add_images(&planner, placed.items, planned->bodies, placed.count, layout);
        foreign_maps_free(&planner.foreign);
        planned->end_image = plan->image_count;
    }
    free(placed.items);
    return result ? report_failure(findings, "out of memory") : 0;
}
