/* See flamegraph_page.h.  What the data in it is like, profile.js says. */
#include "injector/profile/flamegraph/flamegraph_page.h"

#include "injector/profile/export/json_stream.h"
#include "injector/profile/flamegraph/markup.h"
#include "injector/profile/flamegraph/page_parts.h"

#include <inttypes.h>
#include <string.h>

/* ---- Columns ---- */

/* A column NAME of COUNT numbers, each by VALUE. */
static void put_column(const struct flamegraph_request *request, FILE *stream, const char *name,
                       size_t count,
                       uint64_t (*value)(const struct flamegraph_request *request, size_t i))
{
    fprintf(stream, "\"%s\":[", name);
    for (size_t i = 0; i < count; i++)
        fprintf(stream, "%s%" PRIu64, i ? "," : "", value(request, i));
    putc(']', stream);
}

#define COLUMN(function, expression)                                                               \
    static uint64_t function(const struct flamegraph_request *request, size_t i)                   \
    {                                                                                              \
        const struct call_profile *profile = request->profile;                                     \
        return expression;                                                                         \
    }

COLUMN(frame_name, profile->frames[i].name)
COLUMN(frame_module, profile->frames[i].module)
COLUMN(frame_file, profile->frames[i].file)
COLUMN(frame_line, profile->frames[i].line)
COLUMN(frame_tier, profile->frames[i].tier)
COLUMN(frame_kind, profile->frames[i].kind)
COLUMN(frame_inlined, profile->frames[i].inlined)
COLUMN(node_parent, i ? i - profile->nodes[i].parent : 0)
COLUMN(node_frame, i ? profile->nodes[i].frame : 0)
COLUMN(thread_pid, profile->threads[i].pid)
COLUMN(thread_tid, profile->threads[i].tid)
COLUMN(thread_name, profile->threads[i].name)
COLUMN(thread_process, profile->threads[i].process)

static void put_tables(const struct flamegraph_request *request, FILE *stream)
{
    const struct call_profile *profile = request->profile;
    const struct {
        const char *before, *name;
        size_t count;
        uint64_t (*value)(const struct flamegraph_request *request, size_t i);
    } columns[] = {
        {",\"frames\":{", "name", profile->frame_count, frame_name},
        {",", "module", profile->frame_count, frame_module},
        {",", "file", profile->frame_count, frame_file},
        {",", "line", profile->frame_count, frame_line},
        {",", "tier", profile->frame_count, frame_tier},
        {",", "kind", profile->frame_count, frame_kind},
        {",", "inlined", profile->frame_count, frame_inlined},
        {"},\"nodes\":{", "parent", profile->node_count, node_parent},
        {",", "frame", profile->node_count, node_frame},
        {"},\"threads\":{", "pid", profile->thread_count, thread_pid},
        {",", "tid", profile->thread_count, thread_tid},
        {",", "name", profile->thread_count, thread_name},
        {",", "process", profile->thread_count, thread_process},
    };
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        fputs(columns[i].before, stream);
        put_column(request, stream, columns[i].name, columns[i].count, columns[i].value);
    }
    putc('}', stream);
}

/* ---- Samples ---- */

enum sample_column { SAMPLE_NODE, SAMPLE_THREAD, SAMPLE_WEIGHT, SAMPLE_TIME };

/* Times are in us, each less the one before, which keeps them short. */
static void put_samples(const struct flamegraph_request *request, FILE *stream,
                        enum sample_column column)
{
    const struct call_profile *profile = request->profile;
    int64_t before = 0;
    size_t count = 0;
    const uint64_t first =
        column == SAMPLE_TIME ? profile_choice_first_ns(&request->choice, profile) : 0;
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct call_sample *sample = &profile->samples[i];
        const int64_t now =
            column == SAMPLE_TIME ? (int64_t)(call_sample_since(sample, first) / 1000) : 0;
        if (!profile_choice_has(&request->choice, profile, sample))
            continue;
        json_stream_comma(stream, &count);
        switch (column) {
        case SAMPLE_NODE:
            fprintf(stream, "%" PRIu32, sample->node);
            break;
        case SAMPLE_THREAD:
            fprintf(stream, "%" PRIu32, sample->thread);
            break;
        case SAMPLE_WEIGHT:
            fprintf(stream, "%" PRIu64, profile_choice_weight(&request->choice, sample));
            break;
        case SAMPLE_TIME:
            fprintf(stream, "%" PRId64, now - before);
            before = now;
            break;
        }
    }
}

/* ---- Differences ---- */

static void put_number(FILE *stream, const struct flamegraph_difference *row, int column)
{
    if (column == 2)
        fprintf(stream, "%d", row->verdict);
    else
        fprintf(stream, "%.6g", column ? row->new : row->base);
}

static void put_difference(const struct flamegraph_request *request, FILE *stream)
{
    static const char *const columns[] = {"\"base\":[", "],\"new\":[", "],\"verdict\":["};
    fputs(",\"difference\":{", stream);
    for (int column = 0; column < 3; column++) {
        size_t count = 0;
        fputs(columns[column], stream);
        for (size_t i = 0; i < request->profile->node_count; i++) {
            json_stream_comma(stream, &count);
            put_number(stream, &request->difference[i], column);
        }
    }
    fputs("]}", stream);
}

static const char *unit_of(const struct flamegraph_request *request)
{
    const struct profile_event *event = &request->profile->events[request->choice.event];
    if (request->unit)
        return request->unit;
    return request->choice.weight == WEIGHT_SAMPLES ? "samples"
           : event->counts_ns                       ? "ns"
                              : call_profile_string(request->profile, event->name);
}

static void put_data(const struct flamegraph_request *request, FILE *stream)
{
    static const char *const columns[] = {[SAMPLE_NODE] = "\"node\":[",
                                          [SAMPLE_THREAD] = "],\"thread\":[",
                                          [SAMPLE_WEIGHT] = "],\"weight\":[",
                                          [SAMPLE_TIME] = "],\"time\":["};
    const struct call_profile *profile = request->profile;
    size_t count = 0;
    fprintf(stream, "{\"unit\":");
    json_stream_text(stream, unit_of(request));
    fputs(",\"strings\":[", stream);
    for (uint32_t i = 0; i < profile->string_count; i++) {
        json_stream_comma(stream, &count);
        json_stream_text(stream, call_profile_string(profile, i));
    }
    putc(']', stream);
    put_tables(request, stream);
    fputs(",\"samples\":{", stream);
    for (int column = SAMPLE_NODE; column <= SAMPLE_TIME; column++) {
        fputs(columns[column], stream);
        put_samples(request, stream, (enum sample_column)column);
    }
    fputs("]}", stream);
    if (request->difference)
        put_difference(request, stream);
    fputs("}\n", stream);
}

/* ---- The page ---- */

/* Put PART, with what belongs where it has %TITLE%, %STYLE%, %SCRIPT% or %TABLES%. */
static void put_part(const struct flamegraph_request *request, FILE *stream, const char *part)
{
    static const char title[] = "%TITLE%", style[] = "%STYLE%", script[] = "%SCRIPT%",
                      tables[] = "%TABLES%";
    for (; *part; part++)
        if (strncmp(part, title, sizeof title - 1) == 0) {
            markup_put(stream, request->title);
            part += sizeof title - 2;
        } else if (strncmp(part, style, sizeof style - 1) == 0) {
            fputs(page_style, stream);
            part += sizeof style - 2;
        } else if (strncmp(part, script, sizeof script - 1) == 0) {
            for (size_t i = 0; page_scripts[i]; i++)
                fputs(page_scripts[i], stream);
            part += sizeof script - 2;
        } else if (strncmp(part, tables, sizeof tables - 1) == 0) {
            if (request->put_tables)
                request->put_tables(stream, request->context);
            part += sizeof tables - 2;
        } else {
            putc(*part, stream);
        }
}

void flamegraph_page_write(const struct flamegraph_request *request, FILE *stream)
{
    put_part(request, stream, page_begin);
    put_data(request, stream);
    put_part(request, stream, page_end);
}
