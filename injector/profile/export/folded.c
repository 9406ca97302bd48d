/* Folded stacks: a line a stack
 *
 *     comm;outermost;...;innermost COUNT
 *
 * A ";" in a name is written as ":", a space in a thread's name as "_".  At a name's end _[j] marks
 * JIT code, _[k] the kernel, and _[i] inlined code, as flamegraph.pl's --color=java has it.  Each
 * stack of a thread's name stands once. */
#include "injector/profile/export/export_format.h"

#include "injector/text/printable_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* One stack of one name, to be added up. */
struct folded_line {
    uint32_t name, node;
    uint64_t count;
};

static int compare(const void *left, const void *right)
{
    const struct folded_line *a = left, *b = right;
    if (a->name != b->name)
        return a->name < b->name ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

static size_t collect(const struct export_request *request, struct folded_line *lines)
{
    const struct call_profile *profile = request->profile;
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct call_sample *sample = &profile->samples[i];
        if (profile_choice_has(&request->choice, sample))
            lines[count++] =
                (struct folded_line){profile->threads[sample->thread].name, sample->node,
                                     profile_choice_weight(&request->choice, sample)};
    }
    qsort(lines, count, sizeof *lines, compare);
    for (size_t i = 0; i < count; i++)
        if (kept && compare(&lines[kept - 1], &lines[i]) == 0)
            lines[kept - 1].count += lines[i].count;
        else
            lines[kept++] = lines[i];
    return kept;
}

/* ---- Names ---- */

/* The names of functions as they stand in a stack: a function that is not the only one of its line
 * has its place behind its name. */
struct written_names {
    const char **of_function;
    char *text; /* all of them, each with a NUL */
};

static void put_names(const struct export_request *request, FILE *stream)
{
    const struct call_profile *profile = request->profile;
    for (uint32_t i = 0; i < request->functions->count; i++) {
        printable_put(stream, call_profile_string(profile, request->functions->items[i].name));
        profile_functions_put_place(request->functions, profile, i, stream);
        putc('\0', stream);
    }
}

/* Returns 0, or -1 without memory.  Release with free_names in either case. */
static int write_names(struct written_names *names, const struct export_request *request)
{
    size_t bytes, count = request->functions->count;
    FILE *stream = open_memstream(&names->text, &bytes);
    names->of_function = calloc(count + 1, sizeof *names->of_function);
    if (stream)
        put_names(request, stream);
    if (!stream || fclose(stream) || !names->of_function)
        return -1;
    for (size_t i = 0; i < bytes; i++)
        if (names->text[i] == ';')
            names->text[i] = ':';
    const char *next = names->text;
    for (size_t i = 0; i < count; i++, next += strlen(next) + 1)
        names->of_function[i] = next;
    return 0;
}

static void free_names(struct written_names *names)
{
    free(names->of_function);
    free(names->text);
}

static void put_thread(FILE *stream, const char *name)
{
    char *printable = printable_is(name) ? NULL : printable_copy(name);
    for (const char *at = printable ? printable : name; *at; at++)
        putc(*at == ';' ? ':' : *at == ' ' ? '_' : *at, stream);
    free(printable);
}

/* ---- Stacks ---- */

static void put_frame(FILE *stream, const struct export_request *request,
                      const struct written_names *names, uint32_t number)
{
    const struct call_profile *profile = request->profile;
    const struct call_frame *frame = &profile->frames[number];
    putc(';', stream);
    fputs(names->of_function[request->functions->of_frame[number]], stream);
    if (frame->inlined)
        fputs("_[i]", stream);
    else if (frame->kind == FRAME_KERNEL)
        fputs("_[k]", stream);
    else if (call_profile_string(profile, frame->module)[0] && frame->kind != FRAME_NATIVE &&
             (frame->kind == FRAME_JIT || call_profile_string(profile, frame->tier)[0]))
        fputs("_[j]", stream);
}

/* The frames from the outermost on.  A stack is deep, and this no recursion. */
static int put_stack(FILE *stream, const struct export_request *request,
                     const struct written_names *names, uint32_t node, uint32_t **path,
                     size_t *room)
{
    const struct call_profile *profile = request->profile;
    size_t depth = 0;
    for (; node; node = profile->nodes[node].parent) {
        if (depth == *room) {
            uint32_t *grown = realloc(*path, (*room * 2 + 64) * sizeof **path);
            if (!grown)
                return -1;
            *path = grown;
            *room = *room * 2 + 64;
        }
        (*path)[depth++] = profile->nodes[node].frame;
    }
    while (depth--)
        put_frame(stream, request, names, (*path)[depth]);
    return 0;
}

int export_folded(const struct export_request *request, FILE *stream)
{
    const struct call_profile *profile = request->profile;
    struct folded_line *lines = calloc(profile->sample_count + 1, sizeof *lines);
    uint32_t *path = NULL;
    size_t room = 0, count = lines ? collect(request, lines) : 0;
    struct written_names names = {0};
    int result = lines ? write_names(&names, request) : -1;
    for (size_t i = 0; !result && i < count; i++) {
        const char *name = call_profile_string(profile, lines[i].name);
        put_thread(stream, *name ? name : "[unknown]");
        result = put_stack(stream, request, &names, lines[i].node, &path, &room);
        fprintf(stream, " %" PRIu64 "\n", lines[i].count);
    }
    free_names(&names);
    free(lines);
    free(path);
    return result;
}
