/* See same_functions.h. */
#include "injector/compare/same_functions.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A place where functions of one name begin. */
struct named_place {
    uint32_t function, line, column; /* FUNCTION: by name and file alone */
    uint32_t sides;
    uint32_t to_line, to_column; /* in both sides; 0: all of the name are one */
};

static int compare(const void *left, const void *right)
{
    const struct named_place *a = left, *b = right;
    if (a->function != b->function)
        return a->function < b->function ? -1 : 1;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return a->column < b->column ? -1 : a->column > b->column;
}

/* The places, each once.  Returns how many. */
static size_t collect(struct named_place *places, const struct run_set *set)
{
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < set->names.frame_count; i++) {
        const struct call_frame *frame = &set->names.frames[i];
        if (frame->column)
            places[count++] = (struct named_place){.function = set->function_of[i],
                                                   .line = frame->line,
                                                   .column = frame->column,
                                                   .sides = set->sides_of[i]};
    }
    if (count)
        qsort(places, count, sizeof *places, compare);
    for (size_t i = 0; i < count; i++)
        if (kept && compare(&places[kept - 1], &places[i]) == 0)
            places[kept - 1].sides |= places[i].sides;
        else
            places[kept++] = places[i];
    return kept;
}

/* The script itself begins at 1:1, whatever was changed behind: it says nothing of the others. */
static bool is_script(const struct named_place *place)
{
    return place->line == 1 && place->column == 1;
}

static size_t count_of(const struct named_place *places, size_t count, uint32_t sides)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += (places[i].sides & sides) == sides && !is_script(&places[i]);
    return found;
}

static bool has_several(const struct named_place *places, size_t count)
{
    size_t sides[2] = {0};
    for (size_t i = 0; i < count; i++) {
        sides[0] += (places[i].sides & BASE_SIDE) != 0;
        sides[1] += (places[i].sides & NEW_SIDE) != 0;
    }
    return sides[0] > 1 || sides[1] > 1;
}

static void keep_places(struct named_place *places, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        places[i].to_line = places[i].line;
        places[i].to_column = places[i].column;
    }
}

/* As many places of the base alone as of the new ones alone: the second get the first's. */
static void pair_by_order(struct named_place *places, size_t count)
{
    size_t base = 0;
    keep_places(places, count);
    for (size_t i = 0; i < count; i++) {
        if (places[i].sides != NEW_SIDE || is_script(&places[i]))
            continue;
        while (places[base].sides != BASE_SIDE || is_script(&places[base]))
            base++;
        places[i].to_line = places[base].line;
        places[i].to_column = places[base].column;
        base++;
    }
}

/* The COUNT PLACES of one name. */
static void find_common(struct named_place *places, size_t count)
{
    size_t base = count_of(places, count, BASE_SIDE), new = count_of(places, count, NEW_SIDE);
    size_t both = count_of(places, count, BOTH_SIDES);
    if (!has_several(places, count))
        return;
    if (2 * both >= (base < new ? base : new))
        keep_places(places, count);
    else if (base == new)
        pair_by_order(places, count);
}

/* ---- The set anew ---- */

static int copy_strings(struct call_profile *to, const struct call_profile *from)
{
    for (uint32_t i = 0; i < from->string_count; i++) {
        const char *text = call_profile_string(from, i);
        if (call_profile_add_string(to, text, strlen(text)) != i)
            return -1;
    }
    return 0;
}

/* From numbers of the set as it was to those of the new one. */
struct new_numbers {
    uint32_t *frames, *nodes;
};

static int add_frames(struct new_numbers *numbers, struct run_set *set,
                      const struct call_profile *old, const struct named_place *places,
                      size_t count)
{
    for (size_t i = 0; i < old->frame_count; i++) {
        struct call_frame frame = old->frames[i];
        const struct named_place wanted = {
            .function = set->function_of[i], .line = frame.line, .column = frame.column};
        const struct named_place *place =
            frame.column ? bsearch(&wanted, places, count, sizeof *places, compare) : NULL;
        if (place) {
            frame.line = place->to_line;
            frame.column = place->to_column;
        }
        size_t known = set->names.frame_count;
        uint32_t number = numbers->frames[i] = call_profile_add_frame(&set->names, &frame);
        if (number == PROFILE_NOTHING)
            return -1;
        if (number < known)
            continue;
        /* NUMBER is at most I: the place was read already */
        set->function_of[number] = run_set_name_function(set, &frame);
        if (set->function_of[number] == PROFILE_NOTHING)
            return -1;
    }
    return 0;
}

/* A new number is not larger than the old one. */
static void move_values(struct run_values *values, const uint32_t *numbers)
{
    for (size_t i = 0; i < values->count; i++) {
        double value = values->items[i];
        values->items[i] = 0;
        if (value)
            values->items[numbers[i]] += value;
    }
}

static int move_run(struct run_set *set, struct compared_run *run,
                    const struct new_numbers *numbers)
{
    struct run_values *states = &run->tables[BY_STATE], *functions = &run->tables[BY_FUNCTION];
    move_values(states, numbers->frames);
    move_values(&run->tables[BY_STACK], numbers->nodes);
    free(functions->items);
    functions->count = set->names.string_count;
    functions->items = calloc(functions->count, sizeof *functions->items);
    for (size_t i = 0; functions->items && i < states->count && i < set->names.frame_count; i++)
        functions->items[set->function_of[i]] += states->items[i];
    return functions->items ? 0 : -1;
}

static int make_anew(struct run_set *set, const struct call_profile *old,
                     const struct named_place *places, size_t count)
{
    struct new_numbers numbers = {calloc(old->frame_count + 1, sizeof *numbers.frames),
                                  calloc(old->node_count + 1, sizeof *numbers.nodes)};
    int result = !numbers.frames || !numbers.nodes || call_profile_begin(&set->names) ||
                         copy_strings(&set->names, old) ||
                         add_frames(&numbers, set, old, places, count) ||
                         run_set_add_stacks(set, old, numbers.frames, numbers.nodes)
                     ? -1
                     : 0;
    for (size_t i = 0; i < set->run_count && !result; i++)
        result = move_run(set, &set->runs[i], &numbers);
    for (size_t i = 0; i < set->time_count && !result; i++)
        set->times[i].node = numbers.nodes[set->times[i].node];
    free(numbers.frames);
    free(numbers.nodes);
    return result;
}

int same_functions_find(struct run_set *set)
{
    struct named_place *places = calloc(set->names.frame_count + 1, sizeof *places);
    size_t count = places ? collect(places, set) : 0;
    int result = places ? 0 : -1;
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && places[end].function == places[first].function; end++)
            ;
        find_common(places + first, end - first);
    }
    if (count) {
        struct call_profile old = set->names;
        set->names = (struct call_profile){0};
        result = make_anew(set, &old, places, count);
        call_profile_free(&old);
    }
    free(places);
    return result;
}
