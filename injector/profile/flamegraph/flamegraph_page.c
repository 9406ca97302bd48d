/* See flamegraph_page.h.  profile.js describes the data in the page. */
#include "injector/profile/flamegraph/flamegraph_page.h"

#include "injector/profile/flamegraph/markup.h"
#include "injector/profile/flamegraph/page_parts.h"
#include "injector/text/json_writer.h"

#include <inttypes.h>
#include <string.h>

/* ---- Columns ---- */

/* A column NAME of COUNT numbers, each by VALUE. */
static void put_column(const struct flamegraph_request *request, struct json_writer *json,
                       const char *name, size_t count,
                       uint64_t (*value)(const struct flamegraph_request *request, size_t i))
{
    json_array(json, name);
    for (size_t i = 0; i < count; i++)
        json_number(json, NULL, value(request, i));
    json_end_array(json);
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
COLUMN(frame_column, profile->frames[i].column)
COLUMN(frame_tier, profile->frames[i].tier)
COLUMN(frame_kind, profile->frames[i].kind)
COLUMN(frame_inlined, profile->frames[i].inlined)
COLUMN(node_parent, i ? i - profile->nodes[i].parent : 0)
COLUMN(node_frame, i ? profile->nodes[i].frame : 0)
COLUMN(thread_pid, profile->threads[i].pid)
COLUMN(thread_tid, profile->threads[i].tid)
COLUMN(thread_name, profile->threads[i].name)
COLUMN(thread_process, profile->threads[i].process)

static void put_tables(const struct flamegraph_request *request, struct json_writer *json)
{
    const struct call_profile *profile = request->profile;
    const struct {
        const char *table; /* that begins with it, or NULL */
        const char *name;
        size_t count;
        uint64_t (*value)(const struct flamegraph_request *request, size_t i);
    } columns[] = {
        {"frames", "name", profile->frame_count, frame_name},
        {NULL, "module", profile->frame_count, frame_module},
        {NULL, "file", profile->frame_count, frame_file},
        {NULL, "line", profile->frame_count, frame_line},
        {NULL, "column", profile->frame_count, frame_column},
        {NULL, "tier", profile->frame_count, frame_tier},
        {NULL, "kind", profile->frame_count, frame_kind},
        {NULL, "inlined", profile->frame_count, frame_inlined},
        {"nodes", "parent", profile->node_count, node_parent},
        {NULL, "frame", profile->node_count, node_frame},
        {"threads", "pid", profile->thread_count, thread_pid},
        {NULL, "tid", profile->thread_count, thread_tid},
        {NULL, "name", profile->thread_count, thread_name},
        {NULL, "process", profile->thread_count, thread_process},
    };
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        if (columns[i].table && i)
            json_end_object(json);
        if (columns[i].table)
            json_object(json, columns[i].table);
        put_column(request, json, columns[i].name, columns[i].count, columns[i].value);
    }
    json_end_object(json);
}

/* ---- Samples ---- */

enum sample_column { SAMPLE_NODE, SAMPLE_THREAD, SAMPLE_WEIGHT, SAMPLE_TIME };

/* Times are in us, each less the one before, which keeps them short. */
static void put_samples(const struct flamegraph_request *request, struct json_writer *json,
                        enum sample_column column)
{
    const struct call_profile *profile = request->profile;
    int64_t before = 0;
    const uint64_t first =
        column == SAMPLE_TIME ? profile_choice_first_ns(&request->choice, profile) : 0;
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct call_sample *sample = &profile->samples[i];
        const int64_t now =
            column == SAMPLE_TIME ? (int64_t)(call_sample_since(sample, first) / 1000) : 0;
        if (!profile_choice_has(&request->choice, profile, sample))
            continue;
        switch (column) {
        case SAMPLE_NODE:
            json_number(json, NULL, sample->node);
            break;
        case SAMPLE_THREAD:
            json_number(json, NULL, sample->thread);
            break;
        case SAMPLE_WEIGHT:
            json_number(json, NULL, profile_choice_weight(&request->choice, sample));
            break;
        case SAMPLE_TIME:
            json_difference(json, NULL, now - before);
            before = now;
            break;
        }
    }
}

/* ---- Differences ---- */

static void put_difference(const struct flamegraph_request *request, struct json_writer *json)
{
    size_t count = request->profile->node_count;
    json_object(json, "difference");
    json_array(json, "base");
    for (size_t i = 0; i < count; i++)
        json_real(json, NULL, request->difference[i].base, 6);
    json_end_array(json);
    json_array(json, "new");
    for (size_t i = 0; i < count; i++)
        json_real(json, NULL, request->difference[i].new, 6);
    json_end_array(json);
    json_array(json, "verdict");
    for (size_t i = 0; i < count; i++)
        json_difference(json, NULL, request->difference[i].verdict);
    json_end_array(json);
    json_end_object(json);
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
    static const char *const columns[] = {[SAMPLE_NODE] = "node",
                                          [SAMPLE_THREAD] = "thread",
                                          [SAMPLE_WEIGHT] = "weight",
                                          [SAMPLE_TIME] = "time"};
    const struct call_profile *profile = request->profile;
    struct json_writer writer = {.stream = stream, .viewed = true, .shown = true}, *json = &writer;
    json_object(json, NULL);
    json_text(json, "unit", unit_of(request));
    json_array(json, "strings");
    for (uint32_t i = 0; i < profile->string_count; i++)
        json_text(json, NULL, call_profile_string(profile, i));
    json_end_array(json);
    put_tables(request, json);
    json_object(json, "samples");
    for (int column = SAMPLE_NODE; column <= SAMPLE_TIME; column++) {
        json_array(json, columns[column]);
        put_samples(request, json, (enum sample_column)column);
        json_end_array(json);
    }
    json_end_object(json);
    if (request->difference)
        put_difference(request, json);
    json_end_object(json);
}

/* ---- The page ---- */

static void put_lacks(const struct flamegraph_request *request, FILE *stream)
{
    if (!request->lacks)
        return;
    fputs("<p class=\"lacks\">", stream);
    markup_put(stream, request->lacks);
    fputs("</p>\n", stream);
}

/* Put PART, with the texts for %TITLE%, %STYLE%, %SCRIPT% and %TABLES%. */
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
            put_lacks(request, stream);
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
