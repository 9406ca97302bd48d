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
 * are as chosen: periods are in ms where the event counts time.  inlineDepth counts inwards from
 * the function, 0.
 *
 * markers: firefox_markers.h. */
#include "injector/profile/export/export_format.h"

#include "injector/profile/export/firefox_markers.h"
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

/* The frames' kinds are behind CATEGORY_OTHER. */
enum { CATEGORIES = FRAME_KINDS + 1 };

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
    struct string_list strings; /* of the thread */
    struct string_list modules; /* of the thread: its resources */
    struct string_list libs;    /* of all threads so far */
    struct thread_markers markers;
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
    firefox_markers_put_schemas(json);
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

static void put_strings(const struct thread_tables *tables)
{
    json_begin_array(tables->json, "stringArray");
    for (size_t i = 0; i < tables->strings.count; i++)
        json_text(tables->json, NULL,
                  call_profile_string(tables->request->profile, tables->strings.strings[i]));
    firefox_markers_put_names(&tables->markers, tables->json);
    json_end_array(tables->json);
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
    json_flag(json, "showMarkersInTimeline", tables->markers.count > 0);
    put_empty_tables(json);
    firefox_markers_put(&tables->markers, tables->request->profile, tables->strings.count,
                        tables->first_ns, json);
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

static void put_threads(struct thread_tables *tables, const uint32_t *samples, size_t count,
                        const struct firefox_markers *markers)
{
    const struct call_profile *profile = tables->request->profile;
    json_begin_array(tables->json, "threads");
    for (size_t i = 0, next; i < count; i = next) {
        tables->thread = profile->samples[samples[i]].thread;
        for (next = i; next < count && profile->samples[samples[next]].thread == tables->thread;
             next++)
            ;
        tables->samples = samples + i;
        tables->sample_count = next - i;
        tables->markers = firefox_markers_of(markers, tables->thread);
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
    struct firefox_markers markers = {.items = NULL};
    int result =
        make_tables(&tables) || !samples || firefox_markers_find(&markers, request, samples, count)
            ? -1
            : 0;
    if (!result) {
        json_begin_object(&json, NULL);
        put_meta(request, &json);
        put_threads(&tables, samples, count, &markers);
        put_libs(&tables);
        json_end_object(&json);
    }
    firefox_markers_free(&markers);
    free(samples);
    free_tables(&tables);
    return result;
}
