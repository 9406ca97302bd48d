/* The writing half of run_file.h. */
#include "injector/profile/run_file.h"

#include "injector/files/output_file.h"
#include "jitdump/format/byte_sink.h"

#include <stdlib.h>
#include <zstd.h>

enum { ZSTD_LEVEL = 9, HEADER_BYTES = 16 };

/* Samples of one stack, thread, event and place. */
struct kept_sample {
    uint32_t node, thread, event, place;
    uint64_t count, period;
};

struct kept_samples {
    struct kept_sample *items;
    size_t count;
    uint32_t *threads;         /* by the profile's thread: the number of its name and process */
    struct call_profile names; /* its threads alone: those */
};

static int compare(const void *left, const void *right)
{
    const struct kept_sample *a = left, *b = right;
    if (a->event != b->event)
        return a->event < b->event ? -1 : 1;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* Threads are one if their names are: a pool has the same ones in each run, under other numbers. */
static int name_threads(struct kept_samples *kept, const struct call_profile *profile)
{
    kept->threads = calloc(profile->thread_count + 1, sizeof *kept->threads);
    if (!kept->threads || call_profile_begin(&kept->names))
        return -1;
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread thread = {.name = profile->threads[i].name,
                                              .process = profile->threads[i].process};
        kept->threads[i] = call_profile_add_thread(&kept->names, &thread);
        if (kept->threads[i] == PROFILE_NOTHING)
            return -1;
    }
    return 0;
}

static int keep_samples(struct kept_samples *kept, const struct call_profile *profile)
{
    size_t count = 0;
    kept->items = calloc(profile->sample_count + 1, sizeof *kept->items);
    if (!kept->items || name_threads(kept, profile))
        return -1;
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct call_sample *sample = &profile->samples[i];
        kept->items[i] = (struct kept_sample){
            sample->node,  kept->threads[sample->thread], sample->event, sample->place, 1,
            sample->period};
    }
    qsort(kept->items, profile->sample_count, sizeof *kept->items, compare);
    for (size_t i = 0; i < profile->sample_count; i++) {
        if (count && compare(&kept->items[count - 1], &kept->items[i]) == 0) {
            kept->items[count - 1].count++;
            kept->items[count - 1].period += kept->items[i].period;
        } else {
            kept->items[count++] = kept->items[i];
        }
    }
    kept->count = count;
    return 0;
}

static void put_tables(struct byte_sink *sink, const struct call_profile *profile)
{
    sink_uleb(sink, profile->string_count - 1);
    for (uint32_t i = 1; i < profile->string_count; i++) {
        const char *text = call_profile_string(profile, i);
        sink_uleb(sink, strlen(text));
        sink_bytes(sink, text, strlen(text));
    }
    sink_uleb(sink, profile->frame_count);
    for (size_t i = 0; i < profile->frame_count; i++) {
        const struct call_frame *frame = &profile->frames[i];
        const uint32_t fields[] = {frame->name,   frame->module, frame->file, frame->line,
                                   frame->column, frame->tier,   frame->kind, frame->inlined};
        for (size_t k = 0; k < sizeof fields / sizeof fields[0]; k++)
            sink_uleb(sink, fields[k]);
    }
    sink_uleb(sink, profile->node_count - 1);
    for (size_t i = 1; i < profile->node_count; i++) {
        sink_uleb(sink, profile->nodes[i].parent);
        sink_uleb(sink, profile->nodes[i].frame);
    }
    sink_uleb(sink, profile->place_count - 1);
    for (size_t i = 1; i < profile->place_count; i++) {
        sink_uleb(sink, profile->places[i].offset);
        sink_uleb(sink, profile->places[i].line);
        sink_uleb(sink, profile->places[i].file);
    }
}

static void put_body(struct byte_sink *sink, const struct call_profile *profile,
                     const struct kept_samples *kept)
{
    put_tables(sink, profile);
    sink_uleb(sink, kept->names.thread_count);
    for (size_t i = 0; i < kept->names.thread_count; i++) {
        sink_uleb(sink, kept->names.threads[i].name);
        sink_uleb(sink, kept->names.threads[i].process);
    }
    sink_uleb(sink, profile->event_count);
    for (size_t i = 0; i < profile->event_count; i++) {
        sink_uleb(sink, profile->events[i].name);
        sink_uleb(sink, profile->events[i].counts_ns);
    }
    sink_uleb(sink, kept->count);
    for (size_t i = 0; i < kept->count; i++) {
        const struct kept_sample *sample = &kept->items[i];
        sink_uleb(sink, sample->node);
        sink_uleb(sink, sample->thread);
        sink_uleb(sink, sample->event);
        sink_uleb(sink, sample->place);
        sink_uleb(sink, sample->count);
        sink_uleb(sink, sample->period);
    }
}

/* Compress the SIZE bytes of BODY into PACKED, which has room for ROOM.  Returns how many that are,
 * or 0. */
static size_t pack(void *packed, size_t room, const void *body, size_t size)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    size_t bytes = 0;
    if (context && !ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)) &&
        !ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, ZSTD_LEVEL)))
        bytes = ZSTD_compress2(context, packed, room, body, size);
    ZSTD_freeCCtx(context);
    return ZSTD_isError(bytes) ? 0 : bytes;
}

static int write_file(const char *path, const void *packed, size_t bytes, size_t body_bytes,
                      struct findings *findings)
{
    static const uint8_t magic[] = {'p', 'j', 'r', 'u', 'n', '\r', '\n', 0x1a};
    uint8_t header[HEADER_BYTES];
    struct output_file file = {.fd = -1};
    struct byte_sink sink = byte_sink_over(header, sizeof header);
    sink.big_endian = false;
    sink_bytes(&sink, magic, sizeof magic);
    sink_u32(&sink, RUN_FILE_VERSION);
    sink_u32(&sink, (uint32_t)body_bytes);
    int result = output_file_open_shared(&file, path, findings);
    if (!result)
        result = output_file_write(&file, header, sizeof header, findings) ||
                 output_file_write(&file, packed, bytes, findings) ||
                 output_file_flush(&file, findings) || output_file_commit(&file, findings);
    output_file_close(&file);
    return result ? -1 : 0;
}

int run_file_write(const char *path, const struct call_profile *profile, struct findings *findings)
{
    struct kept_samples kept = {0};
    struct byte_sink size = byte_sink_over(NULL, 0), sink;
    uint8_t *body = NULL, *packed = NULL;
    size_t bytes = 0;
    int result = keep_samples(&kept, profile) ? report_failure(findings, "out of memory") : 0;
    if (!result)
        put_body(&size, profile, &kept);
    if (!result && size.size > RUN_FILE_MOST_BYTES)
        result = report_failure(findings,
                                "%s: the run has too many different stacks: a lower -F, or -g "
                                "none, helps",
                                path);
    if (!result) {
        body = malloc(size.size);
        packed = malloc(ZSTD_compressBound(size.size));
        sink = byte_sink_over(body, body ? size.size : 0);
        put_body(&sink, profile, &kept);
        bytes = body && packed ? pack(packed, ZSTD_compressBound(size.size), body, size.size) : 0;
        result = bytes ? write_file(path, packed, bytes, size.size, findings)
                       : report_failure(findings, "out of memory");
    }
    free(packed);
    free(body);
    free(kept.items);
    free(kept.threads);
    call_profile_free(&kept.names);
    return result;
}
