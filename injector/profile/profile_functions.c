/* See profile_functions.h. */
#include "injector/profile/profile_functions.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static struct profile_function function_of(const struct call_frame *frame)
{
    return (struct profile_function){frame->name, frame->module, frame->file, frame->line};
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
    functions->count = 0;
    if (!numbers || !functions->items || !functions->of_frame || !functions->frames ||
        !functions->first) {
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
    return 0;
}

void profile_functions_free(struct profile_functions *functions)
{
    free(functions->items);
    free(functions->of_frame);
    free(functions->frames);
    free(functions->first);
    *functions = (struct profile_functions){0};
}
