/* See profile_functions.h. */
#include "injector/profile/profile_functions.h"

#include "injector/arrays/hash.h"
#include "injector/text/file_name.h"
#include "injector/text/printable_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct profile_function function_of(const struct call_frame *frame)
{
    return (struct profile_function){frame->name, frame->module, frame->file, frame->line,
                                     frame->column};
}

/* Sorted by counting. */
static void list_frames(struct profile_functions *functions, size_t frame_count)
{
    for (size_t i = 0; i < frame_count; i++)
        functions->first[functions->of_frame[i] + 1]++;
    for (size_t i = 0; i < functions->count; i++)
        functions->first[i + 1] += functions->first[i];
    for (size_t i = frame_count; i--;)
        functions->frames[--functions->first[functions->of_frame[i] + 1]] = (uint32_t)i;
    memmove(functions->first, functions->first + 1, functions->count * sizeof *functions->first);
    functions->first[functions->count] = (uint32_t)frame_count;
}

static int compare_lines(const void *left, const void *right, void *context)
{
    const struct profile_function *items = context;
    const struct profile_function *a = &items[*(const uint32_t *)left];
    const struct profile_function *b = &items[*(const uint32_t *)right];
    if (a->file != b->file)
        return a->file < b->file ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

/* The script itself is at 1:1 in each file, and people don't take it for a function of line 1. */
static bool is_script(const struct profile_function *function)
{
    return function->line == 1 && function->column == 1;
}

/* The COUNT functions of ORDER are of one line.  Two of them are several, and the script counts
 * only where its name is the other one's. */
static void look_at_line(struct profile_functions *functions, const uint32_t *order, size_t count)
{
    const struct profile_function *items = functions->items;
    size_t others = 0;
    bool same_name = count > 1;
    for (size_t i = 0; i < count; i++) {
        others += !is_script(&items[order[i]]);
        same_name &= items[order[i]].name == items[order[0]].name;
    }
    for (size_t i = 0; i < count; i++)
        functions->by_column[order[i]] = others > 1 || same_name;
}

/* Find the functions whose line has others.  Returns 0, or -1 without memory. */
static int find_shared_lines(struct profile_functions *functions)
{
    uint32_t *order = calloc(functions->count + 1, sizeof *order);
    size_t count = 0;
    for (uint32_t i = 0; order && i < functions->count; i++)
        if (functions->items[i].column)
            order[count++] = i;
    if (count)
        qsort_r(order, count, sizeof *order, compare_lines, functions->items);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1;
             end < count && compare_lines(&order[first], &order[end], functions->items) == 0; end++)
            ;
        look_at_line(functions, order + first, end - first);
    }
    int result = order ? 0 : -1;
    free(order);
    return result;
}

int profile_functions_find(struct profile_functions *functions, const struct call_profile *profile)
{
    size_t size = 64;
    while (size < profile->frame_count * 2 + 2)
        size *= 2;
    uint32_t *numbers = calloc(size, sizeof *numbers);
    functions->items = calloc(profile->frame_count + 1, sizeof *functions->items);
    functions->of_frame = calloc(profile->frame_count + 1, sizeof *functions->of_frame);
    functions->frames = calloc(profile->frame_count + 1, sizeof *functions->frames);
    functions->first = calloc(profile->frame_count + 2, sizeof *functions->first);
    functions->by_column = calloc(profile->frame_count + 1, sizeof *functions->by_column);
    functions->count = 0;
    if (!numbers || !functions->items || !functions->of_frame || !functions->frames ||
        !functions->first || !functions->by_column) {
        free(numbers);
        return -1;
    }
    for (size_t i = 0; i < profile->frame_count; i++) {
        const struct profile_function function = function_of(&profile->frames[i]);
        size_t at = XXH3_64bits(&function, sizeof function) & (size - 1);
        while (numbers[at] &&
               memcmp(&functions->items[numbers[at] - 1], &function, sizeof function))
            at = (at + 1) & (size - 1);
        if (!numbers[at]) {
            functions->items[functions->count++] = function;
            numbers[at] = (uint32_t)functions->count;
        }
        functions->of_frame[i] = numbers[at] - 1;
    }
    free(numbers);
    list_frames(functions, profile->frame_count);
    return find_shared_lines(functions);
}

void profile_functions_put_line(const struct profile_functions *functions, uint32_t number,
                                FILE *stream)
{
    const struct profile_function *function = &functions->items[number];
    if (function->line)
        fprintf(stream, ":%" PRIu32, function->line);
    if (function->line && functions->by_column[number])
        fprintf(stream, ":%" PRIu32, function->column);
}

void profile_functions_put_place(const struct profile_functions *functions,
                                 const struct call_profile *profile, uint32_t number, FILE *stream)
{
    if (!functions->by_column[number])
        return;
    putc(' ', stream);
    printable_put(stream,
                  file_name_of(call_profile_string(profile, functions->items[number].file)));
    profile_functions_put_line(functions, number, stream);
}

void profile_functions_free(struct profile_functions *functions)
{
    free(functions->items);
    free(functions->of_frame);
    free(functions->frames);
    free(functions->first);
    free(functions->by_column);
    *functions = (struct profile_functions){0};
}
