/* See run_set.h. */
#include "injector/compare/run_set.h"

#include "injector/arrays/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int run_set_begin(struct run_set *set)
{
    *set = (struct run_set){0};
    return call_profile_begin(&set->names);
}

/* What FUNCTION is called in every run: "name  file". */
static uint32_t name_of(struct run_set *set, const struct call_profile *profile,
                        const struct profile_functions *functions, size_t function)
{
    const struct profile_function *item = &functions->items[function];
    const struct call_frame *frame =
        &profile->frames[functions->frames[functions->first[function]]];
    const char *place = call_profile_string(profile, item->file);
    const char *slash = strrchr(place, '/');
    char *text;
    place = slash ? slash + 1 : place; /* the two sides may be two directories */
    if (!*place && frame->kind != FRAME_JIT && frame->kind != FRAME_UNKNOWN)
        place = call_profile_string(profile, item->module);
    int bytes = asprintf(&text, "%s%s%s", call_profile_string(profile, item->name),
                         *place ? "  " : "", place);
    if (bytes < 0)
        return PROFILE_NOTHING;
    uint32_t number = call_profile_add_string(&set->names, text, (size_t)bytes);
    free(text);
    return number;
}

static int add_value(struct compared_run *run, uint32_t number, double value)
{
    if (number >= run->count) {
        size_t count = ((size_t)number + 1) * 2;
        double *values = realloc(run->values, count * sizeof *values);
        if (!values)
            return -1;
        memset(values + run->count, 0, (count - run->count) * sizeof *values);
        run->values = values;
        run->count = count;
    }
    run->values[number] += value;
    return 0;
}

int run_set_add(struct run_set *set, bool is_new, const struct call_profile *profile,
                const struct profile_functions *functions, const struct profile_totals *totals)
{
    uint64_t left = totals->all;
    if (array_reserve(set->runs, set->run_count, set->run_capacity))
        return -1;
    struct compared_run *run = &set->runs[set->run_count++];
    *run = (struct compared_run){.is_new = is_new};
    set->base += !is_new;
    set->new += is_new;
    for (size_t i = 0; i < functions->count; i++) {
        if (!totals->function_self[i])
            continue;
        uint32_t number = name_of(set, profile, functions, i);
        if (number == PROFILE_NOTHING || add_value(run, number, (double)totals->function_self[i]))
            return -1;
        left -= totals->function_self[i];
    }
    /* samples without any stack are nobody's */
    uint32_t nobody = call_profile_add_string(&set->names, "[no stack]", strlen("[no stack]"));
    return nobody == PROFILE_NOTHING ? -1 : add_value(run, nobody, (double)left);
}

int run_set_add_note(struct run_set *set, const char *text)
{
    char *copy = strdup(text);
    if (!copy || array_reserve(set->notes, set->note_count, set->note_capacity)) {
        free(copy);
        return -1;
    }
    set->notes[set->note_count++] = copy;
    return 0;
}

void run_set_free(struct run_set *set)
{
    for (size_t i = 0; i < set->run_count; i++)
        free(set->runs[i].values);
    free(set->runs);
    for (size_t i = 0; i < set->note_count; i++)
        free(set->notes[i]);
    free(set->notes);
    call_profile_free(&set->names);
}
