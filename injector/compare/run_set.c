/* See run_set.h. */
#include "injector/compare/run_set.h"

#include "injector/arrays/array.h"
#include "injector/compare/run_name.h"
#include "injector/text/file_name.h"
#include "injector/text/printable_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_STACK = 0 }; /* the frame of samples without a stack */

/* ---- What is the same in all runs ---- */

static uint32_t copy_string(struct run_set *set, const char *text)
{
    return call_profile_add_string(&set->names, text, strlen(text));
}

/* TEXT without the parts that are others in each run. */
static uint32_t copy_name(struct run_set *set, const char *text)
{
    char *name = malloc(strlen(text) + 1);
    uint32_t number = name ? call_profile_add_string(&set->names, name, run_name_put(name, text))
                           : PROFILE_NOTHING;
    free(name);
    return number;
}

enum { WHERE_BYTES = 32 };

/* Where FRAME begins in its file: ":3:14"; "" if it has no column. */
static void put_where(char where[WHERE_BYTES], const struct call_frame *frame)
{
    where[0] = '\0';
    if (frame->column)
        snprintf(where, WHERE_BYTES, ":%" PRIu32 ":%" PRIu32, frame->line, frame->column);
}

uint32_t run_set_name_function(struct run_set *set, const struct call_frame *frame)
{
    const char *place = call_profile_string(&set->names, frame->file);
    char *text, where[WHERE_BYTES];
    put_where(where, frame);
    if (!*place)
        place = call_profile_string(&set->names, frame->module);
    int bytes = asprintf(&text, "%s%s%s%s", call_profile_string(&set->names, frame->name),
                         *place ? "  " : "", place, where);
    if (bytes < 0)
        return PROFILE_NOTHING;
    uint32_t number = call_profile_add_string(&set->names, text, (size_t)bytes);
    free(text);
    return number;
}

/* By name and file alone: whether there are others is known when all runs are there. */
static uint32_t name_function(struct run_set *set, const struct call_frame *frame)
{
    struct call_frame anywhere = *frame;
    anywhere.column = 0;
    return run_set_name_function(set, &anywhere);
}

/* FRAME, of PROFILE, as one of NAMES.  The two sides may be two directories. */
static uint32_t add_frame(struct run_set *set, const struct call_profile *profile,
                          const struct call_frame *frame)
{
    bool is_generated = frame->kind == FRAME_JIT || frame->kind == FRAME_UNKNOWN;
    const char *module = is_generated ? "" : call_profile_string(profile, frame->module);
    const struct call_frame own = {
        .name = copy_name(set, call_profile_string(profile, frame->name)),
        .module = copy_name(set, module),
        .file = copy_name(set, file_name_of(call_profile_string(profile, frame->file))),
        .line = frame->column ? frame->line : 0,
        .column = frame->column,
        .tier = copy_string(set, call_profile_string(profile, frame->tier)),
        .kind = frame->kind,
        .inlined = frame->inlined};
    size_t known = set->names.frame_count;
    if (own.name == PROFILE_NOTHING || own.module == PROFILE_NOTHING ||
        own.file == PROFILE_NOTHING || own.tier == PROFILE_NOTHING)
        return PROFILE_NOTHING;
    uint32_t number = call_profile_add_frame(&set->names, &own);
    if (number == PROFILE_NOTHING || number < known)
        return number;
    if (array_reserve(set->function_of, number, set->function_of_capacity) ||
        array_reserve(set->sides_of, number, set->sides_capacity))
        return PROFILE_NOTHING;
    set->sides_of[number] = 0;
    set->function_of[number] = name_function(set, &own);
    return set->function_of[number] == PROFILE_NOTHING ? PROFILE_NOTHING : number;
}

/* Samples without any stack are of a function of their own, which is the first. */
static int add_no_stack(struct run_set *set)
{
    static const char name[] = "[no stack]";
    struct call_profile none;
    int result = call_profile_begin(&none);
    const struct call_frame frame = {
        .name = result ? 0 : call_profile_add_string(&none, name, strlen(name)),
        .kind = FRAME_UNKNOWN};
    result = result || frame.name == PROFILE_NOTHING || add_frame(set, &none, &frame) != NO_STACK;
    call_profile_free(&none);
    return result ? -1 : 0;
}

int run_set_begin(struct run_set *set)
{
    *set = (struct run_set){0};
    return call_profile_begin(&set->names) ? -1 : add_no_stack(set);
}

/* From a profile's numbers to those of NAMES. */
struct common_numbers {
    uint32_t *frames, *nodes;
    uint32_t *files; /* by place: that of its line, without directories */
    struct activity_map activities;
};

static int find_files(struct common_numbers *numbers, struct run_set *set,
                      const struct call_profile *profile)
{
    numbers->files = calloc(profile->place_count + 1, sizeof *numbers->files);
    for (size_t i = 0; numbers->files && i < profile->place_count; i++) {
        const char *file = call_profile_string(profile, profile->places[i].file);
        if ((numbers->files[i] = copy_string(set, file_name_of(file))) == PROFILE_NOTHING)
            return -1;
    }
    return numbers->files ? 0 : -1;
}

int run_set_add_stacks(struct run_set *set, const struct call_profile *profile,
                       const uint32_t *frames, uint32_t *nodes)
{
    nodes[0] = 0;
    for (size_t i = 1; i < profile->node_count; i++) {
        const struct call_node *node = &profile->nodes[i];
        nodes[i] = call_profile_add_node(&set->names, nodes[node->parent], frames[node->frame]);
        if (nodes[i] == PROFILE_NOTHING)
            return -1;
    }
    return 0;
}

static int find_numbers(struct common_numbers *numbers, struct run_set *set, bool is_new,
                        const struct call_profile *profile)
{
    numbers->frames = calloc(profile->frame_count + 1, sizeof *numbers->frames);
    numbers->nodes = calloc(profile->node_count + 1, sizeof *numbers->nodes);
    if (!numbers->frames || !numbers->nodes || find_files(numbers, set, profile) ||
        activity_map_make(&numbers->activities, profile))
        return -1;
    for (size_t i = 0; i < profile->frame_count; i++) {
        if ((numbers->frames[i] = add_frame(set, profile, &profile->frames[i])) == PROFILE_NOTHING)
            return -1;
        set->sides_of[numbers->frames[i]] |= is_new ? NEW_SIDE : BASE_SIDE;
    }
    return run_set_add_stacks(set, profile, numbers->frames, numbers->nodes);
}

/* ---- Values ---- */

static int add_value(struct run_values *values, uint32_t number, double value)
{
    if (number >= values->count) {
        size_t count = ((size_t)number + 1) * 2;
        double *items = realloc(values->items, count * sizeof *items);
        if (!items)
            return -1;
        memset(items + values->count, 0, (count - values->count) * sizeof *items);
        values->items = items;
        values->count = count;
    }
    values->items[number] += value;
    return 0;
}

/* By its name alone, or with its file, or where it begins in that. */
static bool is_asked_for(const struct run_set *set, uint32_t frame)
{
    const struct call_profile *names = &set->names;
    if (!set->lines_of)
        return false;
    if (strcmp(call_profile_string(names, names->frames[frame].name), set->lines_of) == 0)
        return true;
    char where[WHERE_BYTES];
    const char *function = call_profile_string(names, set->function_of[frame]);
    size_t bytes = strlen(function);
    if (strncmp(function, set->lines_of, bytes) != 0)
        return false;
    put_where(where, &names->frames[frame]);
    return !set->lines_of[bytes] || strcmp(where, set->lines_of + bytes) == 0;
}

static uint32_t add_text(struct run_set *set, char *text, int bytes)
{
    uint32_t number =
        bytes < 0 ? PROFILE_NOTHING : call_profile_add_string(&set->names, text, (size_t)bytes);
    if (bytes >= 0)
        free(text);
    return number;
}

static uint32_t name_line(struct run_set *set, const struct call_profile *profile,
                          const struct call_place *place)
{
    char *text = NULL;
    const char *file = file_name_of(call_profile_string(profile, place->file));
    if (!place->line)
        return copy_string(set, "(its line is not known)");
    int bytes = asprintf(&text, "%s:%" PRIu32, *file ? file : "line", place->line);
    return add_text(set, text, bytes);
}

/* The code of an inlined frame is its caller's: its offset means nothing in the function's own. */
static uint32_t name_instruction(struct run_set *set, const struct call_place *place,
                                 uint32_t number)
{
    char *text = NULL;
    const struct call_frame *frame = &set->names.frames[number];
    const char *tier = call_profile_string(&set->names, frame->tier);
    if (!place->known || frame->inlined)
        return copy_string(set, frame->inlined ? "(inlined)" : "(not known)");
    int bytes = asprintf(&text, "+0x%" PRIx32 "  %s", place->offset,
                         *tier ? tier : frame_kind_name(frame->kind));
    return add_text(set, text, bytes);
}

static int add_place(struct run_set *set, struct compared_run *run,
                     const struct call_profile *profile, const struct call_sample *sample,
                     uint32_t frame, double value)
{
    const struct call_place *place = &profile->places[sample->place];
    uint32_t line = name_line(set, profile, place);
    uint32_t instruction = name_instruction(set, place, frame);
    set->lines_found = true;
    return line == PROFILE_NOTHING || instruction == PROFILE_NOTHING ||
                   add_value(&run->tables[BY_LINE], line, value) ||
                   add_value(&run->tables[BY_INSTRUCTION], instruction, value)
               ? -1
               : 0;
}

/* Inlined code has its lines by its own name. */
static int add_line(struct run_set *set, bool is_new, const struct call_place *place, uint32_t file,
                    uint32_t number, double value)
{
    const struct call_frame *frame = &set->names.frames[number];
    if (frame->kind != FRAME_JIT || frame->inlined || !place->line)
        return 0;
    const struct function_line line = {set->function_of[number], file, place->line, {0, 0}};
    return function_lines_add(&set->lines, &line, is_new, value);
}

static int add_sample(struct run_set *set, struct compared_run *run,
                      const struct call_profile *profile, const struct common_numbers *numbers,
                      const struct call_sample *sample, double value)
{
    uint32_t node = numbers->nodes[sample->node];
    uint32_t frame = node ? set->names.nodes[node].frame : NO_STACK;
    if (is_asked_for(set, frame) && add_place(set, run, profile, sample, frame, value))
        return -1;
    return add_line(set, run->is_new, &profile->places[sample->place],
                    numbers->files[sample->place], frame, value) ||
                   add_value(&run->tables[BY_FUNCTION], set->function_of[frame], value) ||
                   add_value(&run->tables[BY_STATE], frame, value) ||
                   add_value(&run->tables[BY_ACTIVITY], activity_of(&numbers->activities, sample),
                             value) ||
                   add_value(&run->tables[BY_STACK], node, value)
               ? -1
               : 0;
}

static int add_times(struct run_set *set, bool is_new, const struct call_profile *profile,
                     const struct profile_choice *choice, const struct common_numbers *numbers)
{
    const uint64_t first_ns = profile_choice_first_ns(NULL, profile);
    set->untimed += !first_ns;
    for (size_t i = 0; first_ns && i < profile->sample_count; i++) {
        const struct call_sample *sample = &profile->samples[i];
        if (!profile_choice_has(choice, sample))
            continue;
        if (array_reserve(set->times, set->time_count, set->time_capacity))
            return -1;
        set->times[set->time_count++] = (struct flamegraph_sample){
            numbers->nodes[sample->node], call_sample_since(sample, first_ns),
            profile_choice_weight(choice, sample), is_new};
    }
    return 0;
}

/* The name of the process that has most of CHOICE's samples; PROFILE_NOTHING without memory. */
static uint32_t process_of(struct run_set *set, const struct call_profile *profile,
                           const struct profile_choice *choice)
{
    uint64_t *sums = calloc(profile->string_count + 1, sizeof *sums);
    uint32_t most = 0;
    for (size_t i = 0; sums && i < profile->sample_count; i++) {
        const struct call_sample *sample = &profile->samples[i];
        uint32_t process = profile->threads[sample->thread].process;
        if (!profile_choice_has(choice, sample))
            continue;
        sums[process] += profile_choice_weight(choice, sample);
        most = sums[process] > sums[most] ? process : most;
    }
    uint32_t name = sums ? copy_string(set, call_profile_string(profile, most)) : PROFILE_NOTHING;
    free(sums);
    return name;
}

int run_set_add(struct run_set *set, bool is_new, const struct call_profile *profile,
                const struct profile_choice *choice)
{
    struct common_numbers numbers = {0};
    if (array_reserve(set->runs, set->run_count, set->run_capacity))
        return -1;
    struct compared_run *run = &set->runs[set->run_count++];
    *run = (struct compared_run){.is_new = is_new};
    set->base += !is_new;
    set->new += is_new;
    run->process = process_of(set, profile, choice);
    int result =
        run->process == PROFILE_NOTHING || find_numbers(&numbers, set, is_new, profile) ? -1 : 0;
    for (size_t i = 0; !result && i < profile->sample_count; i++) {
        const struct call_sample *sample = &profile->samples[i];
        if (profile_choice_has(choice, sample))
            result = add_sample(set, run, profile, &numbers, sample,
                                (double)profile_choice_weight(choice, sample));
    }
    if (!result && set->keeps_times)
        result = add_times(set, is_new, profile, choice, &numbers);
    function_lines_join(&set->lines);
    free(numbers.frames);
    free(numbers.nodes);
    free(numbers.files);
    activity_map_free(&numbers.activities);
    return result;
}

size_t run_set_count(const struct run_set *set, enum run_table table)
{
    const size_t counts[RUN_TABLES] = {[BY_FUNCTION] = set->names.string_count,
                                       [BY_STATE] = set->names.frame_count,
                                       [BY_ACTIVITY] = ACTIVITIES,
                                       [BY_STACK] = set->names.node_count,
                                       [BY_LINE] = set->names.string_count,
                                       [BY_INSTRUCTION] = set->names.string_count};
    return counts[table];
}

int run_set_add_note(struct run_set *set, const char *text)
{
    char *copy = printable_copy(text);
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
        for (int table = 0; table < RUN_TABLES; table++)
            free(set->runs[i].tables[table].items);
    free(set->runs);
    for (size_t i = 0; i < set->note_count; i++)
        free(set->notes[i]);
    free(set->notes);
    free(set->times);
    free(set->function_of);
    free(set->sides_of);
    function_lines_free(&set->lines);
    call_profile_free(&set->names);
}
