/* See flamegraph_page.h.  profile.js describes the data in the page. */
#include "injector/profile/flamegraph/flamegraph_page.h"

#include "injector/log/code/tier_mark.h"
#include "injector/profile/activity.h"
#include "injector/profile/flamegraph/markup.h"
#include "injector/profile/flamegraph/packed_data.h"
#include "injector/profile/flamegraph/page_parts.h"
#include "injector/profile/profile_moments.h"
#include "injector/text/base64.h"
#include "injector/text/json_writer.h"
#include "injector/text/printable_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Columns ---- */

/* A column NAME of COUNT numbers, each by VALUE. */
static void put_column(const struct flamegraph_request *request, struct json_writer *json,
                       const char *name, size_t count,
                       uint64_t (*value)(const struct flamegraph_request *request, size_t i))
{
    json_begin_array(json, name);
    for (size_t i = 0; i < count; i++)
        json_number(json, NULL, value(request, i));
    json_end_array(json);
}

/* The same as a text, which is half as long: each number in digits of five bits, the lowest first;
 * 32 is added to a digit that another one follows.  Without memory it is a column of numbers. */
static void put_digit_column(const struct flamegraph_request *request, struct json_writer *json,
                             const char *name, size_t count,
                             uint64_t (*value)(const struct flamegraph_request *request, size_t i))
{
    enum { MOST_DIGITS = 7, BITS = 5, MORE = 1 << BITS };
    char *text = malloc(count * MOST_DIGITS + 1), *end = text;
    for (size_t i = 0; text && i < count; i++) {
        uint32_t left = (uint32_t)value(request, i);
        for (; left >= MORE; left >>= BITS)
            *end++ = base64_digits[MORE + left % MORE];
        *end++ = base64_digits[left];
    }
    if (!text) {
        put_column(request, json, name, count, value);
        return;
    }
    *end = '\0';
    json_text(json, name, text);
    free(text);
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
/* + 1; 0: it is not known. */
COLUMN(frame_rank, (uint64_t)(tier_rank(call_profile_string(profile, profile->frames[i].tier)) + 1))
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
        {NULL, "rank", profile->frame_count, frame_rank},
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
            json_begin_object(json, columns[i].table);
        const bool is_long = columns[i].value == node_parent || columns[i].value == node_frame;
        (is_long ? put_digit_column : put_column)(request, json, columns[i].name, columns[i].count,
                                                  columns[i].value);
    }
    json_end_object(json);
}

/* ---- Samples ---- */

/* When SAMPLE was taken, or began to wait, in CHOICE's time, in us since FIRST_NS. */
static int64_t since_us(const struct profile_choice *choice, const struct call_sample *sample,
                        uint64_t first_ns)
{
    const bool is_early = sample->waits && sample->time_ns < choice->from_ns;
    const uint64_t begin_ns = is_early ? choice->from_ns : sample->time_ns;
    return sample->waits ? (int64_t)(begin_ns - first_ns) / 1000
                         : (int64_t)(call_sample_since(sample, first_ns) / 1000);
}

/* Samples of CHOICE.  Times are in us since the recording's first sample, as --time has them, each
 * less the one before, which keeps them short. */
static void put_samples(const struct call_profile *profile, const struct profile_choice *choice,
                        struct json_writer *json, const char *name)
{
    enum { NODE, THREAD, WEIGHT, TIME, COLUMNS };
    static const char *const names[COLUMNS] = {"node", "thread", "weight", "time"};
    const uint64_t first = profile_choice_first_ns(NULL, profile);
    json_begin_object(json, name);
    for (int column = NODE; column < COLUMNS; column++) {
        int64_t before = 0;
        json_begin_array(json, names[column]);
        for (size_t i = 0; i < profile->sample_count; i++) {
            const struct call_sample *sample = &profile->samples[i];
            if (!profile_choice_has(choice, sample))
                continue;
            const int64_t now = since_us(choice, sample, first);
            if (column == TIME)
                json_difference(json, NULL, now - before);
            else
                json_number(json, NULL,
                            column == NODE     ? sample->node
                            : column == THREAD ? sample->thread
                                               : profile_choice_weight(choice, sample));
            before = now;
        }
        json_end_array(json);
    }
    json_end_object(json);
}

/* Where threads waited, beside what they did: as long as they waited there. */
static void put_waiting(const struct flamegraph_request *request, struct json_writer *json)
{
    const struct call_profile *profile = request->profile;
    struct profile_choice choice = request->choice;
    choice.weight = WEIGHT_PERIOD;
    for (choice.event = 0; choice.event < profile->event_count; choice.event++)
        if (profile->events[choice.event].off_cpu && choice.event != request->choice.event) {
            put_samples(profile, &choice, json, "waiting");
            return;
        }
}

/* What the program said that it did, in us since the recording's first sample. */
static void put_spans(const struct call_profile *profile, struct json_writer *json)
{
    enum { NAME, FROM, TO, PID, TID, COLUMNS };
    static const char *const names[COLUMNS] = {"name", "from", "to", "pid", "tid"};
    const uint64_t first = profile_choice_first_ns(NULL, profile);
    json_begin_object(json, "spans");
    for (int column = NAME; column < COLUMNS; column++) {
        json_begin_array(json, names[column]);
        for (size_t i = 0; i < profile->span_count; i++) {
            const struct profile_span *span = &profile->spans[i];
            if (column == FROM || column == TO)
                json_difference(json, NULL,
                                (int64_t)((column == FROM ? span->from_ns : span->to_ns) - first) /
                                    1000);
            else
                json_number(json, NULL,
                            column == NAME  ? span->name
                            : column == PID ? span->pid
                                            : span->tid);
        }
        json_end_array(json);
    }
    json_end_object(json);
}

/* ---- Moments ---- */

enum moment_column { KIND, AT, TO, THREAD, BEFORE, FRAME, REASON, PLACE, MOMENT_COLUMNS };

/* -1: there is none. */
static int64_t moment_value(const struct profile_moment *moment, enum moment_column column,
                            uint64_t first_ns)
{
    const uint32_t numbers[MOMENT_COLUMNS] = {
        [THREAD] = moment->thread, [BEFORE] = moment->before, [FRAME] = moment->frame};
    switch (column) {
    case KIND:
        return moment->kind;
    case AT:
        return (int64_t)(moment->at_ns - first_ns) / 1000;
    case TO:
        return (int64_t)(moment->to_ns - first_ns) / 1000;
    case REASON:
        return moment->deopt ? moment->deopt->reason : 0;
    case PLACE:
        return moment->deopt ? moment->deopt->place : 0;
    case THREAD:
    case BEFORE:
    case FRAME:
    case MOMENT_COLUMNS:
        break;
    }
    return numbers[column] == PROFILE_NOTHING ? -1 : (int64_t)numbers[column];
}

/* Without memory they are missing. */
static void put_moments(const struct flamegraph_request *request, struct json_writer *json)
{
    static const char *const names[MOMENT_COLUMNS] = {"kind",   "at",    "to",     "thread",
                                                      "before", "frame", "reason", "place"};
    const struct call_profile *profile = request->profile;
    const uint64_t first_ns = profile_choice_first_ns(NULL, profile);
    struct profile_moments moments;
    if (profile_moments_find(&moments, profile, request->functions, &request->choice) == 0) {
        json_begin_object(json, "moments");
        for (enum moment_column column = 0; column < MOMENT_COLUMNS; column++) {
            json_begin_array(json, names[column]);
            for (size_t i = 0; i < moments.count; i++)
                json_difference(json, NULL, moment_value(&moments.items[i], column, first_ns));
            json_end_array(json);
        }
        json_end_object(json);
    }
    profile_moments_free(&moments);
}

/* ---- Activities ---- */

/* A digit for each sample.  Without memory they are missing, and the lanes have no colours. */
static void put_activities(const struct flamegraph_request *request, struct json_writer *json)
{
    const struct call_profile *profile = request->profile;
    char *digits = malloc(profile->sample_count + 1);
    struct activity_map map;
    size_t count = 0;
    if (activity_map_make(&map, profile) == 0 && digits) {
        for (size_t i = 0; i < profile->sample_count; i++)
            if (profile_choice_has(&request->choice, &profile->samples[i]))
                digits[count++] = (char)('0' + activity_of(&map, &profile->samples[i]));
        digits[count] = '\0';
        json_text(json, "activities", digits);
    }
    activity_map_free(&map);
    free(digits);
}

/* ---- Differences ---- */

static void put_difference(const struct flamegraph_request *request, struct json_writer *json)
{
    size_t count = request->profile->node_count;
    json_begin_object(json, "difference");
    json_begin_array(json, "base");
    for (size_t i = 0; i < count; i++)
        json_fraction(json, NULL, request->difference[i].base, 6);
    json_end_array(json);
    json_begin_array(json, "new");
    for (size_t i = 0; i < count; i++)
        json_fraction(json, NULL, request->difference[i].new, 6);
    json_end_array(json);
    json_begin_array(json, "verdict");
    for (size_t i = 0; i < count; i++)
        json_difference(json, NULL, request->difference[i].verdict);
    json_end_array(json);
    json_end_object(json);
}

static void put_side(const struct flamegraph_sides *sides, bool is_new, struct json_writer *json)
{
    enum { NODE, WEIGHT, TIME, COLUMNS };
    static const char *const names[COLUMNS] = {"node", "weight", "time"};
    json_begin_object(json, NULL);
    json_number(json, "runs", is_new ? sides->new_runs : sides->base_runs);
    for (int column = NODE; column < COLUMNS; column++) {
        int64_t before = 0;
        json_begin_array(json, names[column]);
        for (size_t i = 0; i < sides->count; i++) {
            const struct flamegraph_sample *sample = &sides->samples[i];
            const int64_t now = (int64_t)(sample->since_ns / 1000);
            if (sample->is_new != is_new)
                continue;
            if (column == TIME)
                json_difference(json, NULL, now - before);
            else
                json_number(json, NULL, column == NODE ? sample->node : sample->weight);
            before = now;
        }
        json_end_array(json);
    }
    json_end_object(json);
}

/* The base, and what is new. */
static void put_sides(const struct flamegraph_sides *sides, struct json_writer *json)
{
    json_begin_array(json, "sides");
    put_side(sides, false, json);
    put_side(sides, true, json);
    json_end_array(json);
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
    const struct call_profile *profile = request->profile;
    struct json_writer writer = {.stream = stream, .viewed = true, .shown = true}, *json = &writer;
    json_begin_object(json, NULL);
    json_text(json, "unit", unit_of(request));
    json_begin_array(json, "strings");
    for (uint32_t i = 0; i < profile->string_count; i++)
        json_text(json, NULL, call_profile_string(profile, i));
    json_end_array(json);
    put_tables(request, json);
    const uint64_t first_ns = profile_choice_first_ns(NULL, profile);
    json_decimal(json, "length", (double)(profile_choice_last_ns(profile) - first_ns) / 1e3, 3);
    put_samples(profile, &request->choice, json, "samples");
    if (profile->events[request->choice.event].off_cpu && request->choice.weight != WEIGHT_SAMPLES)
        json_flag(json, "waits", true);
    put_waiting(request, json);
    if (profile->span_count)
        put_spans(profile, json);
    if (request->functions)
        put_moments(request, json);
    if (request->wall_ns)
        json_decimal(json, "start", (double)request->wall_ns / 1e6, 3);
    if (request->difference)
        put_difference(request, json);
    if (request->sides)
        put_sides(request->sides, json);
    if (!request->difference)
        put_activities(request, json);
    json_end_object(json);
}

/* ---- The page ---- */

/* A line is a paragraph. */
static void put_lacks(const struct flamegraph_request *request, FILE *stream)
{
    char *lines = request->lacks ? strdup(request->lacks) : NULL, *rest = lines;
    for (const char *line; (line = strsep(&rest, "\n"));) {
        if (!*line)
            continue;
        fputs("<p class=\"lacks\">", stream);
        markup_put(stream, line);
        fputs("</p>\n", stream);
    }
    free(lines);
}

static void put_name(const char *name, FILE *stream)
{
    char *shown = printable_copy(name);
    if (shown)
        markup_put(stream, shown);
    free(shown);
    putc('\n', stream);
}

/* The functions of the page, for those who read it without a script: the data is packed.  Without
 * memory they are missing. */
static void put_names(const struct call_profile *profile, FILE *stream)
{
    bool *is_put = calloc(profile->string_count + 1, sizeof *is_put);
    fputs("<noscript><p>The graph needs JavaScript. It has these functions:</p>\n<pre>\n", stream);
    for (size_t i = 0; is_put && i < profile->frame_count; i++) {
        const uint32_t name = profile->frames[i].name;
        if (!is_put[name])
            put_name(call_profile_string(profile, name), stream);
        is_put[name] = true;
    }
    fputs("</pre></noscript>\n", stream);
    free(is_put);
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
            put_names(request->profile, stream);
            if (request->put_tables)
                request->put_tables(stream, request->context);
            part += sizeof tables - 2;
        } else {
            putc(*part, stream);
        }
}

int flamegraph_page_write(const struct flamegraph_request *request, FILE *stream)
{
    put_part(request, stream, page_begin);
    FILE *data = packed_data_open(stream);
    if (!data)
        return -1;
    put_data(request, data);
    fclose(data);
    put_part(request, stream, page_end);
    return 0;
}
