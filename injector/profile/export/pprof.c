/* pprof's format: a gzipped message of protocol buffers, profile.proto
 *
 *     Profile   1 sample_type*, 2 sample*, 3 mapping*, 4 location*, 5 function*, 6 string*,
 *               9 time_nanos, 10 duration_nanos, 11 period_type, 12 period
 *     ValueType 1 type, 2 unit                 Label    1 key, 2 str, 3 num
 *     Sample    1 location_id+, the leaf first, 2 value+, 3 label*
 *     Mapping   1 id, 5 filename, 7 has_functions, 8 has_filenames, 9 has_line_numbers,
 *               10 has_inline_frames
 *     Location  1 id, 2 mapping_id, 4 line*, the innermost inlined call first
 *     Line      1 function_id, 2 line, 3 column
 *     Function  1 id, 2 name, 3 system_name, 4 filename, 5 start_line
 *
 * A function has no column, and pprof adds up by name: where a line has several functions, each has
 * its place behind its name.  The system_name stays without.
 *
 * A field is a varint of its number << 3 and its kind (0 varint, 2 bytes with their length), then
 * the value.  Ids begin with 1; string 0 is "". */
#include "injector/files/memory_file.h"
#include "injector/profile/export/export_format.h"
#include "injector/text/printable_text.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    KIND_VARINT,
    KIND_BYTES = 2,
    CHUNK_BYTES = 1 << 16,
    GZIP_WINDOW = 15 + 16,
    MEMORY_LEVEL = 8,
    MOST_INLINED = 64
};

/* ---- Bytes ---- */

struct pprof_output {
    const struct export_request *request;
    FILE *stream;
    z_stream packer;
    struct memory_file message, part, small; /* the message at hand, one in that, one in that */
    uint32_t string_count;                   /* those of the profile, and the added ones: */
    uint32_t text_samples, text_count, text_event, text_unit, text_thread, text_pid, text_tid,
        text_tier;
    uint32_t *mapping_of; /* by string: the mapping of that module, or 0 */
    uint32_t *name_of;    /* by function: the string with its place, if its line has others; or 0 */
    uint8_t *depth;       /* by node: see find_depths */
    bool no_memory;
};

static void put_varint(struct pprof_output *out, struct memory_file *to, uint64_t value)
{
    uint8_t bytes[10];
    size_t count = 0;
    do {
        bytes[count++] = (uint8_t)((value & 127) | (value > 127 ? 128 : 0));
        value >>= 7;
    } while (value);
    out->no_memory |= memory_file_add(to, bytes, count) != 0;
}

/* A reader takes a missing number for 0. */
static void put_number(struct pprof_output *out, struct memory_file *to, unsigned field,
                       uint64_t value)
{
    if (!value)
        return;
    put_varint(out, to, field << 3 | KIND_VARINT);
    put_varint(out, to, value);
}

static void put_bytes(struct pprof_output *out, struct memory_file *to, unsigned field,
                      const void *bytes, size_t count)
{
    put_varint(out, to, field << 3 | KIND_BYTES);
    put_varint(out, to, count);
    out->no_memory |= memory_file_add(to, bytes, count) != 0;
}

/* Put the part, as FIELD of the message, and empty it. */
static void put_part(struct pprof_output *out, unsigned field)
{
    put_bytes(out, &out->message, field, out->part.data, out->part.size);
    out->part.size = 0;
}

/* Pack the message so far, and empty it; at the end with Z_FINISH. */
static void pack(struct pprof_output *out, int flush)
{
    uint8_t packed[CHUNK_BYTES];
    if (out->message.size < CHUNK_BYTES && flush != Z_FINISH)
        return;
    out->packer.next_in = out->message.data;
    out->packer.avail_in = (uInt)out->message.size;
    do {
        out->packer.next_out = packed;
        out->packer.avail_out = sizeof packed;
        deflate(&out->packer, flush);
        fwrite(packed, 1, sizeof packed - out->packer.avail_out, out->stream);
    } while (out->packer.avail_out == 0);
    out->message.size = 0;
}

/* ---- Messages ---- */

static void put_value_type(struct pprof_output *out, unsigned field, uint32_t type, uint32_t unit)
{
    put_number(out, &out->part, 1, type);
    put_number(out, &out->part, 2, unit);
    put_part(out, field);
}

/* How many inlined calls NODE is in of those that one location lists, itself with them.  A location
 * of more would make the file grow with the square of their number. */
static int find_depths(struct pprof_output *out)
{
    const struct call_profile *profile = out->request->profile;
    out->depth = calloc(profile->node_count + 1, sizeof *out->depth);
    for (uint32_t i = 1; out->depth && i < profile->node_count; i++)
        if (profile->frames[profile->nodes[i].frame].inlined && profile->nodes[i].parent)
            out->depth[i] = (uint8_t)((out->depth[profile->nodes[i].parent] + 1) % MOST_INLINED);
    return out->depth ? 0 : -1;
}

static bool is_inlined(const struct pprof_output *out, uint32_t node)
{
    return out->depth[node] != 0;
}

/* A function's location is its frame's.  Inlined code has a location for each node, which lists its
 * callers up to the function that they are in.  A node with a line has its own location, too. */
static bool has_own_location(const struct pprof_output *out, uint32_t node)
{
    return is_inlined(out, node) || out->request->profile->nodes[node].line;
}

static uint64_t location_of(const struct pprof_output *out, uint32_t node)
{
    const struct call_profile *profile = out->request->profile;
    return has_own_location(out, node) ? profile->frame_count + node + 1
                                       : profile->nodes[node].frame + 1u;
}

static void put_labels(struct pprof_output *out, const struct call_sample *sample)
{
    const struct profile_thread *thread = &out->request->profile->threads[sample->thread];
    const uint32_t tier =
        sample->node
            ? out->request->profile->frames[out->request->profile->nodes[sample->node].frame].tier
            : 0;
    const struct {
        uint32_t key, text;
        uint64_t number;
    } labels[] = {{out->text_thread, thread->name, 0},
                  {out->text_pid, 0, thread->pid},
                  {out->text_tid, 0, thread->tid},
                  {out->text_tier, tier, 0}};
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++) {
        if (!labels[i].text && !labels[i].number)
            continue;
        out->small.size = 0;
        put_number(out, &out->small, 1, labels[i].key);
        put_number(out, &out->small, 2, labels[i].text);
        put_number(out, &out->small, 3, labels[i].number);
        put_bytes(out, &out->part, 3, out->small.data, out->small.size);
    }
}

static void put_sample(struct pprof_output *out, const struct call_sample *sample,
                       struct memory_file *packed)
{
    const struct call_profile *profile = out->request->profile;
    struct profile_choice by_event = out->request->choice;
    if (by_event.weight == WEIGHT_SAMPLES)
        by_event.weight = WEIGHT_PERIOD;
    packed->size = 0;
    for (uint32_t node = sample->node; node; node = profile->nodes[node].parent) {
        put_varint(out, packed, location_of(out, node));
        while (is_inlined(out, node))
            node = profile->nodes[node].parent;
    }
    put_bytes(out, &out->part, 1, packed->data, packed->size);
    packed->size = 0;
    put_varint(out, packed, 1);
    put_varint(out, packed, profile_choice_weight(&by_event, sample));
    put_bytes(out, &out->part, 2, packed->data, packed->size);
    put_labels(out, sample);
    put_part(out, 2);
}

/* LINE of FRAME, or 0: where it begins. */
static void put_line(struct pprof_output *out, uint32_t frame, uint32_t line)
{
    out->small.size = 0;
    put_number(out, &out->small, 1, frame + 1u);
    put_number(out, &out->small, 2, line ? line : out->request->profile->frames[frame].line);
    put_number(out, &out->small, 3, line ? 0 : out->request->profile->frames[frame].column);
    put_bytes(out, &out->part, 4, out->small.data, out->small.size);
}

static void put_locations(struct pprof_output *out)
{
    const struct call_profile *profile = out->request->profile;
    for (uint32_t i = 0; i < profile->frame_count; i++) {
        put_number(out, &out->part, 1, i + 1u);
        put_number(out, &out->part, 2, out->mapping_of[profile->frames[i].module]);
        put_line(out, i, 0);
        put_part(out, 4);
        pack(out, Z_NO_FLUSH);
    }
    for (uint32_t i = 1; i < profile->node_count; i++) {
        uint32_t node = i;
        if (!has_own_location(out, i))
            continue;
        put_number(out, &out->part, 1, location_of(out, i));
        put_number(out, &out->part, 2,
                   out->mapping_of[profile->frames[profile->nodes[i].frame].module]);
        for (; is_inlined(out, node); node = profile->nodes[node].parent)
            put_line(out, profile->nodes[node].frame, profile->nodes[node].line);
        put_line(out, profile->nodes[node].frame, profile->nodes[node].line);
        put_part(out, 4);
        pack(out, Z_NO_FLUSH);
    }
}

static void put_functions(struct pprof_output *out)
{
    const struct call_profile *profile = out->request->profile;
    for (uint32_t i = 0; i < profile->frame_count; i++) {
        const struct call_frame *frame = &profile->frames[i];
        put_number(out, &out->part, 1, i + 1u);
        uint32_t name = out->name_of[out->request->functions->of_frame[i]];
        put_number(out, &out->part, 2, name ? name : frame->name);
        put_number(out, &out->part, 3, frame->name);
        put_number(out, &out->part, 4, frame->file);
        put_number(out, &out->part, 5, frame->line);
        put_part(out, 5);
        pack(out, Z_NO_FLUSH);
    }
}

/* The module that has most of native code's samples comes first, as pprof expects of a program. */
static uint32_t main_module(const struct call_profile *profile, const uint64_t *self)
{
    uint32_t best = 0;
    uint64_t most = 0;
    for (size_t i = 0; i < profile->frame_count; i++) {
        const struct call_frame *frame = &profile->frames[i];
        const char *module = call_profile_string(profile, frame->module);
        if ((frame->kind == FRAME_NATIVE || frame->kind == FRAME_INTERPRETER) && *module &&
            strncmp(module, "lib", 3) && strncmp(module, "ld-", 3) && strcmp(module, "jit") &&
            self[i] >= most) {
            most = self[i];
            best = frame->module;
        }
    }
    return best;
}

static void put_mapping(struct pprof_output *out, uint32_t module, uint32_t *count)
{
    if (out->mapping_of[module])
        return;
    out->mapping_of[module] = ++*count;
    put_number(out, &out->part, 1, *count);
    put_number(out, &out->part, 5, module);
    for (unsigned field = 7; field <= 10; field++)
        put_number(out, &out->part, field, 1);
    put_part(out, 3);
}

static void put_mappings(struct pprof_output *out)
{
    const struct call_profile *profile = out->request->profile;
    uint32_t count = 0;
    put_mapping(out, main_module(profile, out->request->totals->self), &count);
    for (size_t i = 0; i < profile->frame_count; i++)
        put_mapping(out, profile->frames[i].module, &count);
}

/* ---- Strings ---- */

static uint32_t put_string(struct pprof_output *out, const char *text)
{
    char *printable = printable_is(text) ? NULL : printable_copy(text); /* readers print it */
    const char *shown = printable ? printable : text;
    put_bytes(out, &out->message, 6, shown, strlen(shown));
    free(printable);
    pack(out, Z_NO_FLUSH);
    return out->string_count++;
}

/* The name of function NUMBER, with its place. */
static void put_name(struct pprof_output *out, uint32_t number)
{
    const struct profile_functions *functions = out->request->functions;
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (memory) {
        fputs(call_profile_string(out->request->profile, functions->items[number].name), memory);
        profile_functions_put_place(functions, out->request->profile, number, memory);
    }
    if (memory && fclose(memory) == 0)
        out->name_of[number] = put_string(out, text);
    else
        out->no_memory = true;
    free(text);
}

static void put_strings(struct pprof_output *out)
{
    const struct call_profile *profile = out->request->profile;
    uint32_t event = out->request->choice.event;
    const struct profile_event *one = event < profile->event_count ? &profile->events[event] : NULL;
    for (uint32_t i = 0; i < profile->string_count; i++)
        put_string(out, call_profile_string(profile, i));
    out->text_samples = put_string(out, "samples");
    out->text_count = put_string(out, "count");
    out->text_event = put_string(out, one && one->counts_ns ? "cpu" : "period");
    out->text_unit = put_string(out, one && one->counts_ns ? "nanoseconds" : "count");
    out->text_thread = put_string(out, "thread");
    out->text_pid = put_string(out, "pid");
    out->text_tid = put_string(out, "tid");
    out->text_tier = put_string(out, "tier");
    for (uint32_t i = 0; i < out->request->functions->count; i++)
        if (out->request->functions->by_column[i])
            put_name(out, i);
}

/* ---- A profile ---- */

static void put_samples(struct pprof_output *out)
{
    const struct call_profile *profile = out->request->profile;
    struct memory_file packed = {0};
    uint64_t first = profile_choice_first_ns(&out->request->choice, profile), last = 0;
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct call_sample *sample = &profile->samples[i];
        if (!profile_choice_has(&out->request->choice, sample))
            continue;
        const uint64_t end = sample->time_ns + (sample->waits ? sample->period : 0);
        last = end > last ? end : last;
        put_sample(out, sample, &packed);
        pack(out, Z_NO_FLUSH);
    }
    put_number(out, &out->message, 10, last - first);
    memory_file_free(&packed);
}

int export_pprof(const struct export_request *request, FILE *stream)
{
    struct pprof_output out = {.request = request, .stream = stream};
    out.mapping_of = calloc(request->profile->string_count + 1, sizeof *out.mapping_of);
    out.name_of = calloc(request->functions->count + 1, sizeof *out.name_of);
    if (!out.mapping_of || !out.name_of || find_depths(&out) ||
        deflateInit2(&out.packer, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        free(out.mapping_of);
        free(out.name_of);
        free(out.depth);
        return -1;
    }
    put_strings(&out);
    put_value_type(&out, 1, out.text_samples, out.text_count);
    put_value_type(&out, 1, out.text_event, out.text_unit);
    put_mappings(&out);
    put_locations(&out);
    put_functions(&out);
    put_samples(&out);
    pack(&out, Z_FINISH);
    deflateEnd(&out.packer);
    memory_file_free(&out.message);
    memory_file_free(&out.part);
    memory_file_free(&out.small);
    free(out.mapping_of);
    free(out.name_of);
    free(out.depth);
    return out.no_memory ? -1 : 0;
}
