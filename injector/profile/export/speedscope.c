/* speedscope's file format: https://www.speedscope.app/file-format-schema.json
 *
 *     shared.frames: the functions; profiles: one of type "sampled" for each thread, whose samples
 *     are stacks, the outermost first, and whose weights are as many.
 * Equal stacks of a thread are one, since large files choke its reader: the order of time is lost,
 * and "left heavy" is the view. */
#include "injector/profile/export/export_format.h"
#include "injector/text/json_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void put_frames(const struct call_profile *profile, struct json_writer *json)
{
    json_begin_array(json, "frames");
    for (size_t i = 0; i < profile->frame_count; i++) {
        const struct call_frame *frame = &profile->frames[i];
        const char *file = call_profile_string(profile, frame->file);
        const char *tier = call_profile_string(profile, frame->tier);
        json_begin_object(json, NULL);
        json_text(json, "name", call_profile_string(profile, frame->name));
        json_text(json, "file", *file ? file : call_profile_string(profile, frame->module));
        if (frame->line)
            json_number(json, "line", frame->line);
        if (frame->column)
            json_number(json, "col", frame->column);
        json_text(json, "kind", frame_kind_name(frame->kind));
        if (*tier)
            json_text(json, "tier", tier);
        if (frame->inlined)
            json_flag(json, "inlined", true);
        json_end_object(json);
    }
    json_end_array(json);
}

/* One stack of one thread. */
struct thread_stack_sum {
    uint32_t thread, node;
    uint64_t weight;
};

static int compare(const void *left, const void *right)
{
    const struct thread_stack_sum *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

static size_t collect(const struct export_request *request, struct thread_stack_sum *sums)
{
    const struct call_profile *profile = request->profile;
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < profile->sample_count; i++)
        if (profile_choice_has(&request->choice, &profile->samples[i]))
            sums[count++] = (struct thread_stack_sum){
                profile->samples[i].thread, profile->samples[i].node,
                profile_choice_weight(&request->choice, &profile->samples[i])};
    qsort(sums, count, sizeof *sums, compare);
    for (size_t i = 0; i < count; i++)
        if (kept && compare(&sums[kept - 1], &sums[i]) == 0)
            sums[kept - 1].weight += sums[i].weight;
        else
            sums[kept++] = sums[i];
    return kept;
}

/* The outermost frame first: a node's number is greater than its parent's, so the way up is turned
 * round by counting. */
static void put_stack(const struct call_profile *profile, uint32_t node, struct json_writer *json,
                      uint32_t *path)
{
    size_t depth = 0;
    for (; node; node = profile->nodes[node].parent)
        path[depth++] = profile->nodes[node].frame;
    json_begin_array(json, NULL);
    while (depth--)
        json_number(json, NULL, path[depth]);
    json_end_array(json);
}

static int put_profile(const struct export_request *request, const struct thread_stack_sum *sums,
                       size_t count, struct json_writer *json, uint32_t *path)
{
    const struct call_profile *profile = request->profile;
    const struct profile_thread *thread = &profile->threads[sums->thread];
    const bool is_time =
        profile_weight_is_time(profile, request->choice.event, request->choice.weight);
    uint64_t all = 0;
    char *name;
    if (asprintf(&name, "%s %" PRIu32 "/%" PRIu32, call_profile_string(profile, thread->name),
                 thread->pid, thread->tid) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        all += sums[i].weight;
    json_begin_object(json, NULL);
    json_text(json, "type", "sampled");
    json_text(json, "name", name);
    json_text(json, "unit", is_time ? "nanoseconds" : "none");
    json_number(json, "startValue", 0);
    json_number(json, "endValue", all);
    json_begin_array(json, "samples");
    for (size_t i = 0; i < count; i++)
        put_stack(profile, sums[i].node, json, path);
    json_end_array(json);
    json_begin_array(json, "weights");
    for (size_t i = 0; i < count; i++)
        json_number(json, NULL, sums[i].weight);
    json_end_array(json);
    json_end_object(json);
    free(name);
    return 0;
}

static int put_file(const struct export_request *request, const struct thread_stack_sum *sums,
                    size_t count, struct json_writer *json, uint32_t *path)
{
    int result = 0;
    json_begin_object(json, NULL);
    json_text(json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    json_text(json, "name", request->title);
    json_text(json, "exporter", "perfjit");
    json_begin_object(json, "shared");
    put_frames(request->profile, json);
    json_end_object(json);
    json_begin_array(json, "profiles");
    for (size_t i = 0, next; i < count && !result; i = next) {
        for (next = i; next < count && sums[next].thread == sums[i].thread; next++)
            ;
        result = put_profile(request, sums + i, next - i, json, path);
    }
    json_end_array(json);
    json_end_object(json);
    return result;
}

int export_speedscope(const struct export_request *request, FILE *stream)
{
    const struct call_profile *profile = request->profile;
    struct json_writer json = {.stream = stream, .viewed = true};
    struct thread_stack_sum *sums = calloc(profile->sample_count + 1, sizeof *sums);
    uint32_t *path = calloc(profile->node_count + 1, sizeof *path);
    int result = -1;
    if (sums && path)
        result = put_file(request, sums, collect(request, sums), &json, path);
    free(sums);
    free(path);
    return result;
}
