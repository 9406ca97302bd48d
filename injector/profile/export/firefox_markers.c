/* See firefox_markers.h. */
#include "injector/profile/export/firefox_markers.h"

#include "injector/arrays/array.h"

#include <stdlib.h>

enum marker_kind { MARKER_SPAN, MARKER_TIER, MARKER_DEOPT, MARKER_COLLECTION, MARKER_KINDS };

static const char *const marker_names[MARKER_KINDS] = {
    [MARKER_SPAN] = "UserTiming",
    [MARKER_TIER] = "tier-up",
    [MARKER_DEOPT] = "deopt",
    [MARKER_COLLECTION] = "garbage collection",
};

struct firefox_marker {
    enum marker_kind kind;
    uint32_t thread; /* that it is shown with */
    uint64_t from_ns, to_ns;
    uint32_t span;                       /* its name */
    const struct profile_moment *moment; /* NULL: a span */
};

/* ---- Which there are ---- */

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

static int add_marker(struct firefox_markers *markers, struct firefox_marker marker)
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

static int add_spans(struct firefox_markers *markers, const struct export_request *request,
                     const struct written_threads *written)
{
    const struct call_profile *profile = request->profile;
    for (size_t i = 0; i < profile->span_count; i++) {
        const struct profile_span *span = &profile->spans[i];
        if (is_in_time(&request->choice, span) &&
            add_marker(markers, (struct firefox_marker){.kind = MARKER_SPAN,
                                                        .thread = thread_of_marker(
                                                            written, profile, span->pid, span->tid),
                                                        .from_ns = span->from_ns,
                                                        .to_ns = span->to_ns,
                                                        .span = span->name}))
            return -1;
    }
    return 0;
}

static int add_moments(struct firefox_markers *markers, const struct export_request *request,
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
        if (add_marker(markers,
                       (struct firefox_marker){
                           .kind = kinds[moment->kind],
                           .thread = thread_of_marker(written, profile, thread->pid, thread->tid),
                           .from_ns = moment->at_ns,
                           .to_ns = moment->to_ns,
                           .moment = moment}))
            return -1;
    }
    return 0;
}

static int compare_markers(const void *left, const void *right)
{
    const struct firefox_marker *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->from_ns != b->from_ns)
        return a->from_ns < b->from_ns ? -1 : 1;
    if (a->to_ns != b->to_ns)
        return a->to_ns > b->to_ns ? -1 : 1;
    return a->kind < b->kind ? -1 : a->kind > b->kind;
}

int firefox_markers_find(struct firefox_markers *markers, const struct export_request *request,
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

void firefox_markers_free(struct firefox_markers *markers)
{
    profile_moments_free(&markers->moments);
    free(markers->items);
}

struct thread_markers firefox_markers_of(const struct firefox_markers *markers, uint32_t thread)
{
    size_t first = 0, end = markers->count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (markers->items[middle].thread < thread)
            first = middle + 1;
        else
            end = middle;
    }
    while (end < markers->count && markers->items[end].thread == thread)
        end++;
    return (struct thread_markers){markers->items + first, end - first};
}

/* ---- How they are written ---- */

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

void firefox_markers_put_schemas(struct json_writer *json)
{
    static const struct marker_field fields[] = {{"name", "Name"}, {"entryType", "Entry type"}};
    json_begin_array(json, "markerSchema");
    put_schema(json, "UserTiming", "{marker.data.name}", fields, 2);
    put_schema(json, "Text", "{marker.name}: {marker.data.name}", fields, 1);
    json_end_array(json);
}

/* By kind that the thread has: its place in stringArray, of which FIRST is the first one's. */
static void number_names(const struct thread_markers *markers, size_t first,
                         size_t numbers[MARKER_KINDS])
{
    for (int kind = 0; kind < MARKER_KINDS; kind++) {
        bool has = false;
        for (size_t i = 0; i < markers->count && !has; i++)
            has = markers->items[i].kind == (enum marker_kind)kind;
        numbers[kind] = has ? first++ : SIZE_MAX;
    }
}

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

static void put_data(const struct firefox_marker *marker, const struct call_profile *profile,
                     struct json_writer *json)
{
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

static bool is_instant(const struct firefox_marker *marker)
{
    return marker->kind == MARKER_TIER || marker->kind == MARKER_DEOPT;
}

static double ms_after(uint64_t first_ns, uint64_t time_ns)
{
    return (double)(int64_t)(time_ns - first_ns) / 1e6;
}

void firefox_markers_put(const struct thread_markers *markers, const struct call_profile *profile,
                         size_t strings, uint64_t first_ns, struct json_writer *json)
{
    enum { INSTANT, INTERVAL };
    const struct firefox_marker *items = markers->items;
    size_t numbers[MARKER_KINDS];
    number_names(markers, strings, numbers);
    json_begin_object(json, "markers");
    json_number(json, "length", markers->count);
    json_begin_array(json, "data");
    for (size_t i = 0; i < markers->count; i++)
        put_data(&items[i], profile, json);
    json_end_array(json);
    json_begin_array(json, "name");
    for (size_t i = 0; i < markers->count; i++)
        json_number(json, NULL, numbers[items[i].kind]);
    json_end_array(json);
    json_begin_array(json, "startTime");
    for (size_t i = 0; i < markers->count; i++)
        json_decimal(json, NULL, ms_after(first_ns, items[i].from_ns), 6);
    json_end_array(json);
    json_begin_array(json, "endTime");
    for (size_t i = 0; i < markers->count; i++)
        if (is_instant(&items[i]))
            json_nothing(json, NULL);
        else
            json_decimal(json, NULL, ms_after(first_ns, items[i].to_ns), 6);
    json_end_array(json);
    json_begin_array(json, "phase");
    for (size_t i = 0; i < markers->count; i++)
        json_number(json, NULL, is_instant(&items[i]) ? INSTANT : INTERVAL);
    json_end_array(json);
    json_begin_array(json, "category");
    for (size_t i = 0; i < markers->count; i++)
        json_number(json, NULL, CATEGORY_OTHER);
    json_end_array(json);
    json_end_object(json);
}

void firefox_markers_put_names(const struct thread_markers *markers, struct json_writer *json)
{
    size_t numbers[MARKER_KINDS];
    number_names(markers, 0, numbers);
    for (int kind = 0; kind < MARKER_KINDS; kind++)
        if (numbers[kind] != SIZE_MAX)
            json_text(json, NULL, marker_names[kind]);
}
