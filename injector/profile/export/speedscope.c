/* speedscope's file format: https://www.speedscope.app/file-format-schema.json
 *
 *     shared.frames: the functions; profiles: one of type "sampled" for each thread, whose samples
 *     are stacks, the outermost first, and whose weights are as many.
 * Equal stacks of a thread are one, since large files choke its reader: the order of time is lost,
 * and "left heavy" is the view. */
#include "injector/profile/export/export_format.h"
#include "injector/profile/export/json_stream.h"

#include <inttypes.h>
#include <stdlib.h>

static void put_frames(const struct call_profile *profile, FILE *stream)
{
    size_t count = 0;
    for (size_t i = 0; i < profile->frame_count; i++) {
        const struct call_frame *frame = &profile->frames[i];
        const char *file = call_profile_string(profile, frame->file);
        const char *tier = call_profile_string(profile, frame->tier);
        json_stream_comma(stream, &count);
        fputs("{\"name\":", stream);
        json_stream_text(stream, call_profile_string(profile, frame->name));
        fputs(",\"file\":", stream);
        json_stream_text(stream, *file ? file : call_profile_string(profile, frame->module));
        if (frame->line)
            fprintf(stream, ",\"line\":%" PRIu32, frame->line);
        fprintf(stream, ",\"kind\":\"%s\"", frame_kind_name(frame->kind));
        if (*tier) {
            fputs(",\"tier\":", stream);
            json_stream_text(stream, tier);
        }
        if (frame->inlined)
            fputs(",\"inlined\":true", stream);
        putc('}', stream);
    }
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
        if (profile_choice_has(&request->choice, profile, &profile->samples[i]))
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
static void put_stack(const struct call_profile *profile, uint32_t node, FILE *stream,
                      uint32_t *path)
{
    size_t depth = 0, count = 0;
    for (; node; node = profile->nodes[node].parent)
        path[depth++] = profile->nodes[node].frame;
    putc('[', stream);
    while (depth--) {
        json_stream_comma(stream, &count);
        fprintf(stream, "%" PRIu32, path[depth]);
    }
    putc(']', stream);
}

static void put_profile(const struct export_request *request, const struct thread_stack_sum *sums,
                        size_t count, FILE *stream, uint32_t *path)
{
    const struct call_profile *profile = request->profile;
    const struct profile_thread *thread = &profile->threads[sums->thread];
    const bool is_time = request->choice.weight == WEIGHT_PERIOD &&
                         request->choice.event != PROFILE_ALL &&
                         profile->events[request->choice.event].counts_ns;
    uint64_t all = 0;
    size_t parts = 0;
    for (size_t i = 0; i < count; i++)
        all += sums[i].weight;
    fputs("{\"type\":\"sampled\",\"name\":\"", stream);
    json_stream_part(stream, call_profile_string(profile, thread->name));
    fprintf(stream, " %" PRIu32 "/%" PRIu32 "\"", thread->pid, thread->tid);
    fprintf(stream, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRIu64 ",\"samples\":[",
            is_time ? "nanoseconds" : "none", all);
    for (size_t i = 0; i < count; i++) {
        json_stream_comma(stream, &parts);
        put_stack(profile, sums[i].node, stream, path);
    }
    fputs("],\"weights\":[", stream);
    for (size_t i = 0; i < count; i++)
        fprintf(stream, "%s%" PRIu64, i ? "," : "", sums[i].weight);
    fputs("]}", stream);
}

int export_speedscope(const struct export_request *request, FILE *stream)
{
    const struct call_profile *profile = request->profile;
    struct thread_stack_sum *sums = calloc(profile->sample_count + 1, sizeof *sums);
    uint32_t *path = calloc(profile->node_count + 1, sizeof *path);
    size_t count = sums && path ? collect(request, sums) : 0, profiles = 0;
    if (sums && path) {
        fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"name\":",
              stream);
        json_stream_text(stream, request->title);
        fputs(",\"exporter\":\"perfjit\",\"shared\":{\"frames\":[", stream);
        put_frames(profile, stream);
        fputs("]},\"profiles\":[", stream);
        for (size_t i = 0, next; i < count; i = next) {
            for (next = i; next < count && sums[next].thread == sums[i].thread; next++)
                ;
            json_stream_comma(stream, &profiles);
            put_profile(request, sums + i, next - i, stream, path);
        }
        fputs("]}\n", stream);
    }
    int result = sums && path ? 0 : -1;
    free(sums);
    free(path);
    return result;
}
