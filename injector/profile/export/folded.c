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
        if (profile_choice_has(&request->choice, profile, sample))
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

static void put_text(FILE *stream, const char *text, bool spaces)
{
    char *printable = printable_is(text) ? NULL : printable_copy(text);
    for (const char *at = printable ? printable : text; *at; at++)
        putc(*at == ';' ? ':' : *at == ' ' && !spaces ? '_' : *at, stream);
    free(printable);
}

/* A function that is not the only one of its line has its place behind its name. */
static int put_place(FILE *stream, const struct export_request *request, uint32_t number)
{
    char *place = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&place, &bytes);
    if (!memory)
        return -1;
    profile_functions_put_place(request->functions, request->profile,
                                request->functions->of_frame[number], memory);
    int result = fclose(memory) ? -1 : 0;
    if (!result)
        put_text(stream, place, true);
    free(place);
    return result;
}

static int put_frame(FILE *stream, const struct export_request *request, uint32_t number)
{
    const struct call_profile *profile = request->profile;
    const struct call_frame *frame = &profile->frames[number];
    putc(';', stream);
    put_text(stream, call_profile_string(profile, frame->name), true);
    if (request->functions->by_column[request->functions->of_frame[number]] &&
        put_place(stream, request, number))
        return -1;
    if (frame->inlined)
        fputs("_[i]", stream);
    else if (frame->kind == FRAME_KERNEL)
        fputs("_[k]", stream);
    else if (call_profile_string(profile, frame->module)[0] && frame->kind != FRAME_NATIVE &&
             (frame->kind == FRAME_JIT || call_profile_string(profile, frame->tier)[0]))
        fputs("_[j]", stream);
    return 0;
}

/* The frames from the outermost on.  A stack is deep, and this no recursion. */
static int put_stack(FILE *stream, const struct export_request *request, uint32_t node,
                     uint32_t **path, size_t *room)
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
        if (put_frame(stream, request, (*path)[depth]))
            return -1;
    return 0;
}

int export_folded(const struct export_request *request, FILE *stream)
{
    const struct call_profile *profile = request->profile;
    struct folded_line *lines = calloc(profile->sample_count + 1, sizeof *lines);
    uint32_t *path = NULL;
    size_t room = 0, count = lines ? collect(request, lines) : 0;
    int result = lines ? 0 : -1;
    for (size_t i = 0; !result && i < count; i++) {
        const char *name = call_profile_string(profile, lines[i].name);
        put_text(stream, *name ? name : "[unknown]", false);
        result = put_stack(stream, request, lines[i].node, &path, &room);
        fprintf(stream, " %" PRIu64 "\n", lines[i].count);
    }
    free(lines);
    free(path);
    return result;
}
