/* See image_plan_by_name.h. */
#include "injector/inject/layout/image_plan_by_name.h"

#include "injector/arrays/array.h"
#include "injector/inject/layout/equal_bodies.h"
#include "injector/inject/layout/image_plan.h"
#include "injector/inject/layout/name_groups.h"
#include "injector/inject/layout/neighbourhood.h"
#include "injector/inject/layout/placed_functions.h"

#include <stdlib.h>

enum { BODY_ALIGN_BYTES = 16 };

/* More code than this goes to another file: tools read whole sections. */
#define MAX_TEXT_BYTES (UINT64_C(1) << 30)

/* Nor does a picture reach over more memory, most of which is a hole: objdump reads holes, too. */
#define MAX_PICTURE_BYTES (UINT64_C(128) << 20)

struct name_planner {
    struct image_plan *plan;
    struct name_groups groups;
    enum image_rows rows;
    struct equal_bodies equal;
    uint32_t *firsts; /* of the group that is being placed: which of its bodies stands for which */
    size_t body_count, row_count; /* placed so far: of plan->bodies and plan->rows */
    uint64_t end;                 /* of the image's content so far */
    uint64_t base;                /* of the only image, if it is a picture of memory; else 0 */
    const struct image_body *last;
};

static struct function_place *place_of(const struct name_planner *planner,
                                       const struct image_body *body)
{
    return &planner->plan->processes[body->process].places[body->number];
}

static struct jit_image *current(const struct name_planner *planner)
{
    return &planner->plan->images[planner->plan->image_count - 1];
}

static int add_image(struct name_planner *planner, uint32_t part)
{
    struct image_plan *plan = planner->plan;
    struct jit_image *images =
        array_room(plan->images, plan->image_count, &plan->image_capacity, sizeof *images);
    if (!images)
        return -1;
    plan->images = images;
    images[plan->image_count++] =
        (struct jit_image){.process = NO_PROCESS,
                           .part = part,
                           .base = planner->base,
                           .text_start = IMAGE_PAGE_BYTES,
                           .text_end = IMAGE_PAGE_BYTES,
                           .bodies = plan->bodies + planner->body_count,
                           .rows = plan->rows ? plan->rows + planner->row_count : NULL};
    planner->end = IMAGE_PAGE_BYTES;
    planner->last = NULL;
    return 0;
}

/* The offset for BODY of FUNCTION.  BODY is NULL if the code has no address.  If a body lies right
 * behind the one before in memory, it does so in the file, too: one map record can cover both.  In
 * a picture each one lies as in memory. */
static uint64_t next_offset(const struct name_planner *planner, const struct image_body *body,
                            const struct jit_function *function)
{
    const struct image_body *last = planner->last;
    if (planner->base && body)
        return function->addr - planner->base;
    if (last && body && last->process == body->process) {
        const struct jit_function *before = last->function;
        uint32_t gap = place_of(planner, last)->gap_after;
        if (gap != NO_GAP && before->addr + before->size + gap == function->addr)
            return planner->end + gap;
    }
    return (planner->end + BODY_ALIGN_BYTES - 1) / BODY_ALIGN_BYTES * BODY_ALIGN_BYTES;
}

static void put_body(struct name_planner *planner, const struct image_body *body)
{
    const struct jit_function *function = body->function;
    struct jit_image *image = current(planner);
    struct image_body *placed = &planner->plan->bodies[planner->body_count++];
    *placed = *body;
    placed->offset = next_offset(planner, body, function);
    if (planner->base && !image->body_count)
        image->text_start = placed->offset;
    planner->end = image->text_end = placed->offset + function->size;
    planner->last = placed;
    image->body_count++;
}

/* The bodies of GROUP that are not equal to one before. */
static void put_bodies(struct name_planner *planner, const struct name_group *group)
{
    uint32_t image = (uint32_t)(planner->plan->image_count - 1);
    const struct image_body *bodies = planner->groups.bodies + group->first;
    for (uint32_t i = 0; i < group->count; i++) {
        uint32_t first = planner->firsts[i];
        if (first == i)
            put_body(planner, &bodies[i]);
        struct function_place *place = place_of(planner, &bodies[i]);
        place->image = image;
        place->offset =
            first == i ? planner->last->offset : place_of(planner, &bodies[first])->offset;
    }
}

/* How many of GROUP's bodies have a place of their own. */
static uint32_t count_places(const struct name_planner *planner, const struct name_group *group)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < group->count; i++)
        count += planner->firsts[i] == i;
    return count;
}

static struct image_row row_of(const struct name_planner *planner, const struct name_group *group,
                               const struct jit_function *first)
{
    struct tier_mark cut = {.form = TIER_IS_NONE};
    if (planner->rows == ROWS_FUNCTION)
        cut = tier_mark_of(first->name, first->name_bytes);
    return (struct image_row){(uint32_t)current(planner)->body_count, count_places(planner, group),
                              cut.at, cut.bytes};
}

static void put_row(struct name_planner *planner, const struct name_group *group)
{
    struct jit_image *image = current(planner);
    const struct jit_function *function = planner->groups.bodies[group->first].function;
    const struct image_row row = row_of(planner, group, function);
    if (planner->plan->rows)
        planner->plan->rows[planner->row_count++] = row;
    if (image_row_is_labelled(&row)) {
        image->label_count += row.count;
        image->names_bytes += row.count * (uint64_t)BODY_LABEL_BYTES;
        planner->end = next_offset(planner, NULL, NULL) + ROW_LEAD_BYTES;
        planner->last = NULL;
    }
    put_bodies(planner, group);
    image->row_count++;
    image->names_bytes += function->name_bytes - row.cut_bytes + (uint64_t)1;
}

static int place_machine(struct name_planner *planner, uint32_t machine)
{
    uint32_t part = 0;
    if (add_image(planner, part))
        return -1;
    for (size_t i = 0; i < planner->groups.count; i++) {
        const struct name_group *group = &planner->groups.groups[i];
        if (group->machine != machine)
            continue;
        if (equal_bodies_find(&planner->equal, &planner->groups, group, planner->firsts) ||
            (planner->end > MAX_TEXT_BYTES && add_image(planner, ++part)))
            return -1;
        put_row(planner, group);
    }
    return 0;
}

/* Whether no two bodies have one name, and no mark is left out of any: rows say nothing then, and
 * the bodies stand in order already.  A million of them are 48 MB. */
static bool is_plain(const struct name_groups *groups, enum image_rows rows)
{
    return rows != ROWS_FUNCTION && groups->count == groups->body_count &&
           groups->machine_count == 1;
}

/* The base of an image that is a picture of memory, for GROUPS that are plain.  0: the bodies are
 * of several processes, too far from each other, or one took another's place. */
static uint64_t base_of_picture(const struct name_groups *groups)
{
    struct neighbourhood those = {0};
    for (size_t i = 0; i < groups->body_count; i++) {
        const struct image_body *body = &groups->bodies[i];
        const uint64_t addr = body->function->addr;
        if (body->process != groups->bodies[0].process ||
            !neighbourhood_take(&those, addr, addr + body->function->size))
            return 0;
    }
    if (those.shared || those.reach - those.start > MAX_PICTURE_BYTES ||
        those.start < UINT64_C(2) * IMAGE_PAGE_BYTES) /* no page is in front of it */
        return 0;
    return image_plan_base(those.start);
}

static int make_room(struct name_planner *planner)
{
    struct name_groups *groups = &planner->groups;
    struct image_plan *plan = planner->plan;
    if (is_plain(groups, planner->rows)) {
        planner->base = base_of_picture(groups);
        plan->bodies = groups->bodies;
        groups->are_given = true;
        return 0;
    }
    plan->bodies = malloc((groups->body_count + 1) * sizeof *plan->bodies);
    plan->rows = malloc((groups->count + 1) * sizeof *plan->rows);
    return plan->bodies && plan->rows ? 0 : -1;
}

static int place_all(struct name_planner *planner)
{
    const struct name_groups *groups = &planner->groups;
    uint32_t most = 1;
    for (size_t i = 0; i < groups->count; i++)
        most = groups->groups[i].count > most ? groups->groups[i].count : most;
    planner->firsts = malloc(most * sizeof *planner->firsts);
    if (!planner->firsts || make_room(planner))
        return -1;
    for (uint32_t i = 0; i < groups->machine_count; i++)
        if (place_machine(planner, i))
            return -1;
    return 0;
}

/* Each process may have code in all images. */
static void give_all(struct image_plan *plan)
{
    for (size_t i = 0; i < plan->process_count; i++)
        plan->processes[i].end_image = plan->image_count;
}

int image_plan_by_name(struct image_plan *plan, const struct jit_process *processes,
                       const struct timeline *timelines, size_t count, enum image_rows rows,
                       struct findings *findings)
{
    struct name_planner planner = {.plan = plan, .rows = rows};
    int result = name_groups_open(&planner.groups, plan, processes, timelines, count, rows) ||
                 place_all(&planner);
    give_all(plan);
    name_groups_free(&planner.groups);
    equal_bodies_free(&planner.equal);
    free(planner.firsts);
    return result ? report_failure(findings, "out of memory") : 0;
}
