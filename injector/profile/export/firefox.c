/* The Firefox Profiler's processed profile, version 47; its reader upgrades any older one.
 *
 *     meta, threads: each with tables by columns (samples, stackTable, frameTable, funcTable,
 *     resourceTable, nativeSymbols, markers) and stringArray; libs
 *     funcTable.resource ▶ resourceTable: name, type 1, lib ▶ libs: of all threads
 *
 * A function's resource is the file that it is in, -1 if none is known: two functions of one name
 * in two libraries stay apart.
 *
 * Each process is shown with its threads.  Times are milliseconds since the first sample; weights
 * are as chosen: periods are in ms where the event counts time.  inlineDepth counts
 * from the function, 0, inwards.
 *
 * Markers: spans of the program are of the type UserTiming.  Tier-ups, deopts and collections are
 * of the type Text.  meta.markerSchema describes both types; without that the reader shows none. */
#include "injector/profile/export/export_format.h"

#include "injector/arrays/array.h"
#include "injector/profile/profile_moments.h"
#include "injector/text/json_writer.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- Strings, numbered anew ---- */

struct string_list {
    uint32_t *strings;
    uint32_t *number; /* by string: its place in that + 1; 0: it is not there */
    size_t count;
};

/* Make a list for strings below COUNT.  Returns 0, or -1 without memory; to be freed in either
 * case. */
static int string_list_make(struct string_list *list, size_t count)
{
    list->count = 0;
    list->strings = calloc(count + 1, sizeof *list->strings);
    list->number = calloc(count + 1, sizeof *list->number);
    return list->strings && list->number ? 0 : -1;
}

/* Add STRING, if it is not there. */
static void string_list_add(struct string_list *list, uint32_t string)
{
    if (list->number[string])
        return;
    list->strings[list->count++] = string;
    list->number[string] = (uint32_t)list->count;
}

/* The time for this grows with the entries, not with the list. */
static void string_list_empty(struct string_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        list->number[list->strings[i]] = 0;
    list->count = 0;
}

static void string_list_free(struct string_list *list)
{
    free(list->strings);
    free(list->number);
}

enum { CATEGORY_OTHER, CATEGORIES = FRAME_KINDS + 1 };

enum marker_kind { MARKER_SPAN, MARKER_TIER, MARKER_DEOPT, MARKER_COLLECTION, MARKER_KINDS };

static const char *const marker_names[MARKER_KINDS] = {
    [MARKER_SPAN] = "UserTiming",
    [MARKER_TIER] = "tier-up",
    [MARKER_DEOPT] = "deopt",
    [MARKER_COLLECTION] = "garbage collection",
};

struct marker {
    enum marker_kind kind;
    uint32_t thread; /* that it is shown with */
    uint64_t from_ns, to_ns;
    uint32_t span;                       /* its name */
    const struct profile_moment *moment; /* NULL: a span */
};

struct markers {
    struct marker *items; /* by thread, then by time */
    size_t count, capacity;
    struct profile_moments moments;
};

/* One thread while it is written: which nodes, functions and strings it has, numbered anew.  Each
 * node is a frame; but a function is one in all its frames, since the reader's inverted tree and
 * its operations on functions go by its number.
 *
 * Work and text are the thread's own: the data of other threads is not read for each. */
struct thread_tables {
    const struct export_request *request;
    struct json_writer *json;
    uint32_t thread;
    const uint32_t *samples; /* of the thread, in order of time */
    size_t sample_count;
    uint32_t *nodes;  /* of the thread, ascending: parents first */
    uint32_t *number; /* by node: its place in that + 1; 0: it is not the thread's */
    uint32_t *depth;  /* by node of the thread: how deep it is inlined */
    size_t count;
    uint32_t *functions;       /* of the thread: the first frame of each */
    uint32_t *function_number; /* by function: its place in that + 1; 0: it is not the thread's */
    size_t function_count;
    struct string_list strings;   /* of the thread */
    struct string_list modules;   /* of the thread: its resources */
    struct string_list libs;      /* of all threads so far */
    const struct marker *markers; /* of the thread */
    size_t marker_count;
    bool is_time; /* the samples' weights are times */
    uint64_t first_ns;
};

static double ms_of(uint64_t ns)
{
    return (double)ns / 1e6;
}

static void put_empty(struct json_writer *json, const char *key)
{
    json_begin_array(json, key);
    json_end_array(json);
}

static void put_category_of(struct json_writer *json, const char *name, const char *colour)
{
    json_begin_object(json, NULL);
    json_text(json, "name", name);
    json_text(json, "color", colour);
    json_begin_array(json, "subcategories");
    json_text(json, NULL, "Other");
    json_end_array(json);
    json_end_object(json);
}

struct marker_field {
    const char *key, *label;
};

static void put_schema(struct json_writer *json, const char *name, const char *label,
                       const struct marker_field *fields, size_t count)
{
    static const char *const labels[] = {"tooltipLabel", "tableLabel", "chartLabel"};
    static const char *const places[] = {"marker-chart", "marker-table", "timeline-overview"};
    json_begin_object(json, NULL);
    json_text(json, "name", name);
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++)
        json_text(json, labels[i], label);
    json_begin_array(json, "display");
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        json_text(json, NULL, places[i]);
    json_end_array(json);
    json_begin_array(json, "data");
    for (size_t i = 0; i < count; i++) {
        json_begin_object(json, NULL);
        json_text(json, "key", fields[i].key);
        json_text(json, "label", fields[i].label);
        json_text(json, "format", "string");
        json_flag(json, "searchable", true);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

static void put_marker_schemas(struct json_writer *json)
{
    static const struct marker_field fields[] = {{"name", "Name"}, {"entryType", "Entry type"}};
    json_begin_array(json, "markerSchema");
    put_schema(json, "UserTiming", "{marker.data.name}", fields, 2);
    put_schema(json, "Text", "{marker.name}: {marker.data.name}", fields, 1);
    json_end_array(json);
}

static void put_meta(const struct export_request *request, struct json_writer *json)
{
    static const char *const colours[FRAME_KINDS] = {[FRAME_JIT] = "green",
                                                     [FRAME_INTERPRETER] = "yellow",
                                                     [FRAME_NATIVE] = "blue",
                                                     [FRAME_KERNEL] = "orange",
                                                     [FRAME_UNKNOWN] = "grey"};
    json_begin_object(json, "meta");
    json_number(json, "version", 27);
    json_number(json, "preprocessedProfileVersion", 47);
    json_number(json, "interval", 1);
    json_number(json, "startTime", 0);
    json_number(json, "processType", 0);
    json_number(json, "stackwalk", 1);
    json_flag(json, "debug", false);
    json_flag(json, "symbolicated", true);
    json_text(json, "importedFrom", "perfjit");
    json_text(json, "product", request->title);
    put_marker_schemas(json);
    json_begin_array(json, "categories");
    put_category_of(json, "Other", "grey");
    for (uint32_t i = 0; i < FRAME_KINDS; i++)
        put_category_of(json, frame_kind_name(i), colours[i]);
    json_end_array(json);
    json_end_object(json);
}

/* ---- Tables ---- */

static const struct call_frame *frame_of(const struct thread_tables *tables, size_t i)
{
    const struct call_profile *profile = tables->request->profile;
    return &profile->frames[profile->nodes[tables->nodes[i]].frame];
}

typedef void value_writer(const struct thread_tables *tables, size_t i);

/* A column of COUNT values, each by PUT. */
static void put_values(const struct thread_tables *tables, const char *name, size_t count,
                       value_writer *put)
{
    json_begin_array(tables->json, name);
    for (size_t i = 0; i < count; i++)
        put(tables, i);
    json_end_array(tables->json);
}

/* A column of a value for each node, which are the stacks and frames. */
static void put_column(const struct thread_tables *tables, const char *name, value_writer *put)
{
    put_values(tables, name, tables->count, put);
}

static const struct call_frame *function_at(const struct thread_tables *tables, size_t i)
{
    return &tables->request->profile->frames[tables->functions[i]];
}

static void put_line_of(const struct thread_tables *tables, const struct call_frame *frame)
{
    if (frame->line)
        json_number(tables->json, NULL, frame->line);
    else
        json_nothing(tables->json, NULL);
}

static void put_column_of(const struct thread_tables *tables, const struct call_frame *frame)
{
    if (frame->column)
        json_number(tables->json, NULL, frame->column);
    else
        json_nothing(tables->json, NULL);
}

static void put_null(const struct thread_tables *tables, size_t i)
{
    (void)i;
    json_nothing(tables->json, NULL);
}

static void put_zero(const struct thread_tables *tables, size_t i)
{
    (void)i;
    json_number(tables->json, NULL, 0);
}

static void put_minus_one(const struct thread_tables *tables, size_t i)
{
    (void)i;
    json_difference(tables->json, NULL, -1);
}

static void put_index(const struct thread_tables *tables, size_t i)
{
    json_number(tables->json, NULL, i);
}

static void put_prefix(const struct thread_tables *tables, size_t i)
{
    uint32_t parent = tables->request->profile->nodes[tables->nodes[i]].parent;
    if (parent)
        json_number(tables->json, NULL, tables->number[parent] - 1);
    else
        json_nothing(tables->json, NULL);
}

static void put_category(const struct thread_tables *tables, size_t i)
{
    json_number(tables->json, NULL, frame_of(tables, i)->kind + 1);
}

static void put_depth(const struct thread_tables *tables, size_t i)
{
    json_number(tables->json, NULL, tables->depth[i]);
}

/* The line that ran, or else the line where the function begins. */
static void put_line(const struct thread_tables *tables, size_t i)
{
    uint32_t line = tables->request->profile->nodes[tables->nodes[i]].line;
    if (line)
        json_number(tables->json, NULL, line);
    else
        put_line_of(tables, frame_of(tables, i));
}

/* Of the line that ran, the column is not known. */
static void put_column_in_line(const struct thread_tables *tables, size_t i)
{
    if (tables->request->profile->nodes[tables->nodes[i]].line)
        json_nothing(tables->json, NULL);
    else
        put_column_of(tables, frame_of(tables, i));
}

static void put_function(const struct thread_tables *tables, size_t i)
{
    const struct call_profile *profile = tables->request->profile;
    uint32_t function =
        tables->request->functions->of_frame[profile->nodes[tables->nodes[i]].frame];
    json_number(tables->json, NULL, tables->function_number[function] - 1);
}

/* STRING by its number in the thread; the empty one is none. */
static void put_string(const struct thread_tables *tables, uint32_t string)
{
    if (string)
        json_number(tables->json, NULL, tables->strings.number[string] - 1);
    else
        json_nothing(tables->json, NULL);
}

static void put_name(const struct thread_tables *tables, size_t i)
{
    json_number(tables->json, NULL, tables->strings.number[function_at(tables, i)->name] - 1);
}

static void put_file(const struct thread_tables *tables, size_t i)
{
    put_string(tables, function_at(tables, i)->file);
}

static void put_resource(const struct thread_tables *tables, size_t i)
{
    uint32_t module = function_at(tables, i)->module;
    json_difference(tables->json, NULL,
                    module ? (int64_t)tables->modules.number[module] - 1 : (int64_t)-1);
}

static void put_is_js(const struct thread_tables *tables, size_t i)
{
    const struct call_frame *frame = function_at(tables, i);
    json_flag(tables->json, NULL, frame->kind == FRAME_JIT || frame->tier);
}

static void put_first_line(const struct thread_tables *tables, size_t i)
{
    put_line_of(tables, function_at(tables, i));
}

static void put_first_column(const struct thread_tables *tables, size_t i)
{
    put_column_of(tables, function_at(tables, i));
}

/* The reader's word for a tier is the frame's implementation. */
static void put_implementation(const struct thread_tables *tables, size_t i)
{
    put_string(tables, frame_of(tables, i)->tier);
}

static void put_length(const struct thread_tables *tables)
{
    json_number(tables->json, "length", tables->count);
}

static void put_stack_table(const struct thread_tables *tables)
{
    json_begin_object(tables->json, "stackTable");
    put_length(tables);
    put_column(tables, "frame", put_index);
    put_column(tables, "prefix", put_prefix);
    put_column(tables, "category", put_category);
    put_column(tables, "subcategory", put_zero);
    json_end_object(tables->json);
}

static void put_frame_table(const struct thread_tables *tables)
{
    json_begin_object(tables->json, "frameTable");
    put_length(tables);
    put_column(tables, "address", put_minus_one);
    put_column(tables, "inlineDepth", put_depth);
    put_column(tables, "category", put_category);
    put_column(tables, "subcategory", put_zero);
    put_column(tables, "func", put_function);
    put_column(tables, "nativeSymbol", put_null);
    put_column(tables, "innerWindowID", put_zero);
    put_column(tables, "implementation", put_implementation);
    put_column(tables, "line", put_line);
    put_column(tables, "column", put_column_in_line);
    json_end_object(tables->json);
}

static void put_func_table(const struct thread_tables *tables)
{
    size_t count = tables->function_count;
    json_begin_object(tables->json, "funcTable");
    json_number(tables->json, "length", count);
    put_values(tables, "name", count, put_name);
    put_values(tables, "isJS", count, put_is_js);
    put_values(tables, "relevantForJS", count, put_is_js);
    put_values(tables, "resource", count, put_resource);
    put_values(tables, "fileName", count, put_file);
    put_values(tables, "lineNumber", count, put_first_line);
    put_values(tables, "columnNumber", count, put_first_column);
    json_end_object(tables->json);
}

/* ---- Libraries ---- */

static void put_lib(const struct thread_tables *tables, size_t i)
{
    json_number(tables->json, NULL, tables->libs.number[tables->modules.strings[i]] - 1);
}

static void put_lib_name(const struct thread_tables *tables, size_t i)
{
    put_string(tables, tables->modules.strings[i]);
}

static void put_type(const struct thread_tables *tables, size_t i)
{
    (void)i;
    json_number(tables->json, NULL, 1); /* a library */
}

static void put_resource_table(const struct thread_tables *tables)
{
    size_t count = tables->modules.count;
    json_begin_object(tables->json, "resourceTable");
    json_number(tables->json, "length", count);
    put_values(tables, "lib", count, put_lib);
    put_values(tables, "name", count, put_lib_name);
    put_values(tables, "host", count, put_null);
    put_values(tables, "type", count, put_type);
    json_end_object(tables->json);
}

/* There is nothing to look up in them: the names are here. */
static void put_libs(const struct thread_tables *tables)
{
    static const char *const names[] = {"name", "path", "debugName", "debugPath"};
    struct json_writer *json = tables->json;
    json_begin_array(json, "libs");
    for (size_t i = 0; i < tables->libs.count; i++) {
        json_begin_object(json, NULL);
        json_text(json, "arch", "");
        json_text(json, "breakpadId", "");
        json_nothing(json, "codeId");
        for (size_t name = 0; name < sizeof names / sizeof names[0]; name++)
            json_text(json, names[name],
                      call_profile_string(tables->request->profile, tables->libs.strings[i]));
        json_end_object(json);
    }
    json_end_array(json);
}

/* ---- Samples ---- */

static void put_sample_column(const struct thread_tables *tables, const char *name, int which)
{
    const struct call_profile *profile = tables->request->profile;
    json_begin_array(tables->json, name);
    for (size_t i = 0; i < tables->sample_count; i++) {
        const struct call_sample *sample = &profile->samples[tables->samples[i]];
        if (which == 0 && sample->node)
            json_number(tables->json, NULL, tables->number[sample->node] - 1);
        else if (which == 0)
            json_nothing(tables->json, NULL);
        else if (which == 1)
            json_decimal(tables->json, NULL, ms_of(call_sample_since(sample, tables->first_ns)), 6);
        else if (tables->is_time)
            json_decimal(tables->json, NULL,
                         ms_of(profile_choice_weight(&tables->request->choice, sample)), 6);
        else
            json_number(tables->json, NULL,
                        profile_choice_weight(&tables->request->choice, sample));
    }
    json_end_array(tables->json);
}

static void put_samples(const struct thread_tables *tables)
{
    json_begin_object(tables->json, "samples");
    json_number(tables->json, "length", tables->sample_count);
    json_text(tables->json, "weightType", tables->is_time ? "tracing-ms" : "samples");
    put_sample_column(tables, "stack", 0);
    put_sample_column(tables, "time", 1);
    put_sample_column(tables, "weight", 2);
    json_end_object(tables->json);
}

/* ---- A thread ---- */

static int ascending(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

static void find_nodes(struct thread_tables *tables)
{
    const struct call_profile *profile = tables->request->profile;
    for (size_t i = 0; i < tables->sample_count; i++)
        for (uint32_t node = profile->samples[tables->samples[i]].node;
             node && !tables->number[node]; node = profile->nodes[node].parent) {
            tables->number[node] = 1;
            tables->nodes[tables->count++] = node;
        }
    qsort(tables->nodes, tables->count, sizeof *tables->nodes, ascending);
    for (size_t i = 0; i < tables->count; i++) {
        uint32_t node = tables->nodes[i], parent = profile->nodes[node].parent;
        tables->number[node] = (uint32_t)i + 1;
        tables->depth[i] = profile->frames[profile->nodes[node].frame].inlined
                               ? 1 + (parent ? tables->depth[tables->number[parent] - 1] : 0)
                               : 0;
    }
}

/* The empty one is none, but as a name. */
static void find_strings(struct thread_tables *tables, const struct call_frame *frame)
{
    string_list_add(&tables->strings, frame->name);
    if (frame->file)
        string_list_add(&tables->strings, frame->file);
    if (!frame->module)
        return;
    string_list_add(&tables->strings, frame->module);
    string_list_add(&tables->modules, frame->module);
    string_list_add(&tables->libs, frame->module);
}

/* The functions of the nodes, and the strings of both. */
static void find_functions(struct thread_tables *tables)
{
    const struct call_profile *profile = tables->request->profile;
    const struct profile_functions *functions = tables->request->functions;
    for (size_t i = 0; i < tables->count; i++) {
        uint32_t frame = profile->nodes[tables->nodes[i]].frame;
        if (profile->frames[frame].tier)
            string_list_add(&tables->strings, profile->frames[frame].tier);
        if (tables->function_number[functions->of_frame[frame]])
            continue;
        tables->functions[tables->function_count++] = frame;
        tables->function_number[functions->of_frame[frame]] = (uint32_t)tables->function_count;
        find_strings(tables, &profile->frames[frame]);
    }
}

/* Make way for the next thread. */
static void forget(struct thread_tables *tables)
{
    const uint32_t *of_frame = tables->request->functions->of_frame;
    for (size_t i = 0; i < tables->count; i++)
        tables->number[tables->nodes[i]] = 0;
    for (size_t i = 0; i < tables->function_count; i++)
        tables->function_number[of_frame[tables->functions[i]]] = 0;
    string_list_empty(&tables->strings);
    string_list_empty(&tables->modules);
    tables->count = tables->function_count = 0;
}

/* By kind: its place behind the thread's other strings; all of KINDS that the thread has. */
static size_t number_marker_names(const struct thread_tables *tables, size_t numbers[MARKER_KINDS])
{
    size_t count = 0;
    for (int kind = 0; kind < MARKER_KINDS; kind++) {
        bool has = false;
        for (size_t i = 0; i < tables->marker_count && !has; i++)
            has = tables->markers[i].kind == (enum marker_kind)kind;
        numbers[kind] = has ? tables->strings.count + count++ : SIZE_MAX;
    }
    return count;
}

static void put_strings(const struct thread_tables *tables)
{
    size_t numbers[MARKER_KINDS];
    json_begin_array(tables->json, "stringArray");
    for (size_t i = 0; i < tables->strings.count; i++)
        json_text(tables->json, NULL,
                  call_profile_string(tables->request->profile, tables->strings.strings[i]));
    number_marker_names(tables, numbers);
    for (int kind = 0; kind < MARKER_KINDS; kind++)
        if (numbers[kind] != SIZE_MAX)
            json_text(tables->json, NULL, marker_names[kind]);
    json_end_array(tables->json);
}

/* ---- Markers ---- */

/* What MOMENT is: "sum: wrong map, at /a.js:1:29", "sum: bytecode to Sparkplug".  To be freed; NULL
 * without memory. */
static char *text_of_moment(const struct call_profile *profile, const struct profile_moment *moment)
{
    char *text;
    const struct profile_deopt *deopt = moment->deopt;
    if (moment->kind == MOMENT_COLLECTION)
        return asprintf(&text, "%.1f ms", (double)(moment->to_ns - moment->at_ns) / 1e6) < 0 ? NULL
                                                                                             : text;
    const struct call_frame *before = &profile->frames[moment->before];
    const char *name = call_profile_string(profile, before->name);
    const int bytes =
        deopt ? asprintf(&text, "%s: %s, at %s", name, call_profile_string(profile, deopt->reason),
                         call_profile_string(profile, deopt->place))
              : asprintf(&text, "%s: %s to %s", name, call_profile_string(profile, before->tier),
                         call_profile_string(profile, profile->frames[moment->frame].tier));
    return bytes < 0 ? NULL : text;
}

static void put_marker_data(const struct thread_tables *tables, const struct marker *marker)
{
    const struct call_profile *profile = tables->request->profile;
    struct json_writer *json = tables->json;
    char *text = marker->moment ? text_of_moment(profile, marker->moment) : NULL;
    json_begin_object(json, NULL);
    json_text(json, "type", marker->moment ? "Text" : "UserTiming");
    json_text(json, "name",
              text             ? text
              : marker->moment ? ""
                               : call_profile_string(profile, marker->span));
    if (!marker->moment)
        json_text(json, "entryType", "measure");
    json_end_object(json);
    free(text);
}

static bool is_instant(const struct marker *marker)
{
    return marker->kind == MARKER_TIER || marker->kind == MARKER_DEOPT;
}

static double marker_ms(const struct thread_tables *tables, uint64_t time_ns)
{
    return (double)(int64_t)(time_ns - tables->first_ns) / 1e6;
}

static void put_markers(const struct thread_tables *tables)
{
    enum { INSTANT, INTERVAL };
    struct json_writer *json = tables->json;
    size_t numbers[MARKER_KINDS];
    number_marker_names(tables, numbers);
    json_begin_object(json, "markers");
    json_number(json, "length", tables->marker_count);
    json_begin_array(json, "data");
    for (size_t i = 0; i < tables->marker_count; i++)
        put_marker_data(tables, &tables->markers[i]);
    json_end_array(json);
    json_begin_array(json, "name");
    for (size_t i = 0; i < tables->marker_count; i++)
        json_number(json, NULL, numbers[tables->markers[i].kind]);
    json_end_array(json);
    json_begin_array(json, "startTime");
    for (size_t i = 0; i < tables->marker_count; i++)
        json_decimal(json, NULL, marker_ms(tables, tables->markers[i].from_ns), 6);
    json_end_array(json);
    json_begin_array(json, "endTime");
    for (size_t i = 0; i < tables->marker_count; i++)
        if (is_instant(&tables->markers[i]))
            json_nothing(json, NULL);
        else
            json_decimal(json, NULL, marker_ms(tables, tables->markers[i].to_ns), 6);
    json_end_array(json);
    json_begin_array(json, "phase");
    for (size_t i = 0; i < tables->marker_count; i++)
        json_number(json, NULL, is_instant(&tables->markers[i]) ? INSTANT : INTERVAL);
    json_end_array(json);
    json_begin_array(json, "category");
    for (size_t i = 0; i < tables->marker_count; i++)
        json_number(json, NULL, CATEGORY_OTHER);
    json_end_array(json);
    json_end_object(json);
}

/* By thread: whether it has samples that are written. */
struct written_threads {
    bool *is_written;
    uint32_t first;
};

/* The thread that a marker of PID and TID is shown with: that one, else the main thread, else any
 * of the process, else the first. */
static uint32_t thread_of_marker(const struct written_threads *written,
                                 const struct call_profile *profile, uint32_t pid, uint32_t tid)
{
    uint32_t found = PROFILE_NOTHING;
    for (uint32_t i = 0; pid && i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        if (!written->is_written[i] || thread->pid != pid)
            continue;
        if (tid && thread->tid == tid)
            return i;
        if (found == PROFILE_NOTHING || thread->tid == pid)
            found = i;
    }
    return found == PROFILE_NOTHING ? written->first : found;
}

static int add_marker(struct markers *markers, struct marker marker)
{
    if (array_reserve(markers->items, markers->count, markers->capacity))
        return -1;
    markers->items[markers->count++] = marker;
    return 0;
}

/* As far as SPAN is in the chosen time. */
static bool is_in_time(const struct profile_choice *choice, const struct profile_span *span)
{
    return !choice->to_ns || (span->to_ns >= choice->from_ns && span->from_ns < choice->to_ns);
}

static int add_spans(struct markers *markers, const struct export_request *request,
                     const struct written_threads *written)
{
    const struct call_profile *profile = request->profile;
    for (size_t i = 0; i < profile->span_count; i++) {
        const struct profile_span *span = &profile->spans[i];
        if (is_in_time(&request->choice, span) &&
            add_marker(markers, (struct marker){.kind = MARKER_SPAN,
                                                .thread = thread_of_marker(written, profile,
                                                                           span->pid, span->tid),
                                                .from_ns = span->from_ns,
                                                .to_ns = span->to_ns,
                                                .span = span->name}))
            return -1;
    }
    return 0;
}

static int add_moments(struct markers *markers, const struct export_request *request,
                       const struct written_threads *written)
{
    static const enum marker_kind kinds[] = {[MOMENT_TIER] = MARKER_TIER,
                                             [MOMENT_DEOPT] = MARKER_DEOPT,
                                             [MOMENT_COLLECTION] = MARKER_COLLECTION};
    const struct call_profile *profile = request->profile;
    if (profile_moments_find(&markers->moments, profile, request->functions, &request->choice))
        return -1;
    for (size_t i = 0; i < markers->moments.count; i++) {
        const struct profile_moment *moment = &markers->moments.items[i];
        const struct profile_thread nobody = {0};
        const struct profile_thread *thread =
            moment->thread == PROFILE_NOTHING ? &nobody : &profile->threads[moment->thread];
        if (add_marker(markers, (struct marker){.kind = kinds[moment->kind],
                                                .thread = thread_of_marker(
                                                    written, profile, thread->pid, thread->tid),
                                                .from_ns = moment->at_ns,
                                                .to_ns = moment->to_ns,
                                                .moment = moment}))
            return -1;
    }
    return 0;
}

static int compare_markers(const void *left, const void *right)
{
    const struct marker *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->from_ns != b->from_ns)
        return a->from_ns < b->from_ns ? -1 : 1;
    if (a->to_ns != b->to_ns)
        return a->to_ns > b->to_ns ? -1 : 1;
    return a->kind < b->kind ? -1 : a->kind > b->kind;
}

/* Of the COUNT samples that are written. */
static int find_markers(struct markers *markers, const struct export_request *request,
                        const uint32_t *samples, size_t count)
{
    const struct call_profile *profile = request->profile;
    struct written_threads written = {
        .is_written = calloc(profile->thread_count + 1, sizeof *written.is_written)};
    if (!count || !written.is_written) {
        free(written.is_written);
        return count ? -1 : 0;
    }
    for (size_t i = 0; i < count; i++)
        written.is_written[profile->samples[samples[i]].thread] = true;
    written.first = profile->samples[samples[0]].thread;
    int result =
        add_spans(markers, request, &written) || add_moments(markers, request, &written) ? -1 : 0;
    if (markers->count)
        qsort(markers->items, markers->count, sizeof *markers->items, compare_markers);
    free(written.is_written);
    return result;
}

static void put_empty_tables(struct json_writer *json)
{
    static const char *const symbols[] = {"libIndex", "address", "name", "functionSize"};
    put_empty(json, "pausedRanges");
    json_begin_object(json, "nativeSymbols");
    json_number(json, "length", 0);
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++)
        put_empty(json, symbols[i]);
    json_end_object(json);
}

static void put_thread(struct thread_tables *tables)
{
    const struct call_profile *profile = tables->request->profile;
    const struct profile_thread *thread = &profile->threads[tables->thread];
    struct json_writer *json = tables->json;
    char pid[16];
    snprintf(pid, sizeof pid, "%" PRIu32, thread->pid);
    find_nodes(tables);
    find_functions(tables);
    json_begin_object(json, NULL);
    json_text(json, "processType", "default");
    json_text(json, "processName", call_profile_string(profile, thread->process));
    json_text(json, "name", call_profile_string(profile, thread->name));
    json_flag(json, "isMainThread", thread->pid == thread->tid);
    json_text(json, "pid", pid);
    json_number(json, "tid", thread->tid);
    json_number(json, "processStartupTime", 0);
    json_nothing(json, "processShutdownTime");
    json_number(json, "registerTime", 0);
    json_nothing(json, "unregisterTime");
    json_flag(json, "showMarkersInTimeline", tables->marker_count > 0);
    put_empty_tables(json);
    put_markers(tables);
    put_samples(tables);
    put_stack_table(tables);
    put_frame_table(tables);
    put_func_table(tables);
    put_resource_table(tables);
    put_strings(tables);
    json_end_object(json);
    forget(tables);
}

/* Whether the weights are those of one event, which counts time. */
static bool weighs_time(const struct export_request *request)
{
    return profile_weight_is_time(request->profile, request->choice.event, request->choice.weight);
}

/* A sample that counts, to be sorted. */
struct timed_sample {
    uint64_t time_ns;
    uint32_t thread, number;
};

static int compare(const void *left, const void *right)
{
    const struct timed_sample *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* The numbers of the samples that count, by thread and time: a recording has those of each
 * processor together, and the reader expects times that ascend.  NULL without memory. */
static uint32_t *sort_samples(const struct export_request *request, size_t *count)
{
    const struct call_profile *profile = request->profile;
    struct timed_sample *sorted = calloc(profile->sample_count + 1, sizeof *sorted);
    uint32_t *numbers = calloc(profile->sample_count + 1, sizeof *numbers);
    *count = 0;
    for (uint32_t i = 0; sorted && i < profile->sample_count; i++)
        if (profile_choice_has(&request->choice, &profile->samples[i]))
            sorted[(*count)++] =
                (struct timed_sample){profile->samples[i].time_ns, profile->samples[i].thread, i};
    if (sorted)
        qsort(sorted, *count, sizeof *sorted, compare);
    for (size_t i = 0; sorted && numbers && i < *count; i++)
        numbers[i] = sorted[i].number;
    if (!sorted) {
        free(numbers);
        numbers = NULL;
    }
    free(sorted);
    return numbers;
}

/* The markers of the thread at hand, of which MARKERS has those of earlier threads in front. */
static void take_markers(struct thread_tables *tables, const struct markers *markers, size_t *taken)
{
    tables->markers = markers->items + *taken;
    tables->marker_count = 0;
    while (*taken < markers->count && markers->items[*taken].thread == tables->thread) {
        tables->marker_count++;
        ++*taken;
    }
}

static void put_threads(struct thread_tables *tables, const uint32_t *samples, size_t count,
                        const struct markers *markers)
{
    size_t taken = 0;
    const struct call_profile *profile = tables->request->profile;
    json_begin_array(tables->json, "threads");
    for (size_t i = 0, next; i < count; i = next) {
        tables->thread = profile->samples[samples[i]].thread;
        for (next = i; next < count && profile->samples[samples[next]].thread == tables->thread;
             next++)
            ;
        tables->samples = samples + i;
        tables->sample_count = next - i;
        take_markers(tables, markers, &taken);
        put_thread(tables);
    }
    json_end_array(tables->json);
}

static int make_tables(struct thread_tables *tables)
{
    const struct call_profile *profile = tables->request->profile;
    size_t functions = tables->request->functions->count + 1;
    tables->nodes = calloc(profile->node_count + 1, sizeof *tables->nodes);
    tables->number = calloc(profile->node_count + 1, sizeof *tables->number);
    tables->depth = calloc(profile->node_count + 1, sizeof *tables->depth);
    tables->functions = calloc(functions, sizeof *tables->functions);
    tables->function_number = calloc(functions, sizeof *tables->function_number);
    int result = string_list_make(&tables->strings, profile->string_count) |
                 string_list_make(&tables->modules, profile->string_count) |
                 string_list_make(&tables->libs, profile->string_count);
    return tables->nodes && tables->number && tables->depth && tables->functions &&
                   tables->function_number
               ? result
               : -1;
}

static void free_tables(struct thread_tables *tables)
{
    free(tables->nodes);
    free(tables->number);
    free(tables->depth);
    free(tables->functions);
    free(tables->function_number);
    string_list_free(&tables->strings);
    string_list_free(&tables->modules);
    string_list_free(&tables->libs);
}

int export_firefox(const struct export_request *request, FILE *stream)
{
    struct json_writer json = {.stream = stream, .viewed = true};
    struct thread_tables tables = {.request = request,
                                   .json = &json,
                                   .is_time = weighs_time(request),
                                   .first_ns = profile_choice_first_ns(NULL, request->profile)};
    size_t count = 0;
    uint32_t *samples = sort_samples(request, &count);
    struct markers markers = {.items = NULL};
    int result = make_tables(&tables) || !samples || find_markers(&markers, request, samples, count)
                     ? -1
                     : 0;
    if (!result) {
        json_begin_object(&json, NULL);
        put_meta(request, &json);
        put_threads(&tables, samples, count, &markers);
        put_libs(&tables);
        json_end_object(&json);
    }
    profile_moments_free(&markers.moments);
    free(markers.items);
    free(samples);
    free_tables(&tables);
    return result;
}
