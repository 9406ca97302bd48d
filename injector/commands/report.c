/* perfjit report: see commands.h. */
#include "injector/commands/commands.h"

#include "injector/check/census/kept_census.h"
#include "injector/profile/activity.h"
#include "injector/profile/report/function_table.h"
#include "injector/profile/report/gprof_text.h"
#include "injector/profile/report/group_table.h"
#include "injector/profile/view_input.h"
#include "injector/recording/perf_data/perf_format.h"
#include "injector/text/json_writer.h"
#include "injector/text/printable_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_CALLERS = 256,
    KEY_CALLEES,
    KEY_THREADS,
    KEY_BY,
    KEY_GPROF,
    KEY_JSON,
    KEY_SORT,
    KEY_JIT,
    KEY_FULL_NAMES
};
enum { DEFAULT_ROWS = 30 };

struct report_options {
    struct view_request request;
    const char *callers, *callees;
    enum report_group group; /* REPORT_GROUPS: functions */
    bool gprof, json, by_total, jit_only, full_names;
    bool is_chosen; /* which functions, and in which order */
    size_t rows;
};

static const struct argp_option option_table[] = {
    OPTION_GROUP("What is shown:"),
    {"callers", KEY_CALLERS, "NAME", 0, "The callers of the functions with NAME in their name", 0},
    {"callees", KEY_CALLEES, "NAME", 0,
     "The functions that are called by those with NAME in their name", 0},
    {"by", KEY_BY, "WHAT", 0,
     "A row for each of these:\nprocess, thread: what ran\ntier: how its code was "
     "compiled\nruntime: whose JIT code it is\nkind: JIT code, native code, the kernel, ...",
     0},
    {"threads", KEY_THREADS, 0, 0, "The same as --by thread", 0},
    {"jit", KEY_JIT, 0, 0, "Functions of JIT code alone", 0},
    {"sort", KEY_SORT, "BY", 0,
     "The order of functions:\nself: by their own time (default)\ntotal: by the time with all that "
     "they call",
     0},
    {"rows", 'n', "COUNT", 0, "How many rows to print (default: 30; 0: all)", 0},
    {"gprof", KEY_GPROF, 0, 0, "A flat profile and a call graph, as gprof prints them", 0},
    {"json", KEY_JSON, 0, 0, "All functions, or rows, as JSON", 0},
    {"full-names", KEY_FULL_NAMES, 0, 0,
     "Names with Java's packages and all template arguments, which tables leave out", 0},
    OPTION_GROUP("Input:"),
    VIEW_INPUT,
    VIEW_OPTIONS,
    VIEW_MESSAGES,
    {0}};

/* One table at a time; as JSON there are functions and rows. */
static void check_options(const struct report_options *options, struct argp_state *state)
{
    const bool calls = options->callers || options->callees;
    if ((options->callers && options->callees) ||
        calls + options->gprof + (options->group != REPORT_GROUPS) > 1)
        argp_error(state, "--callers, --callees, --gprof and --by each print a table: name one");
    if ((options->by_total || options->jit_only) &&
        (calls || options->gprof || options->group != REPORT_GROUPS))
        argp_error(state, "--sort and --jit are for the table of functions");
    if (options->json && (calls || options->gprof))
        argp_error(state, "--json has functions, or with --by rows; not --%s",
                   options->gprof     ? "gprof"
                   : options->callers ? "callers"
                                      : "callees");
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct report_options *options = state->input;
    switch (key) {
    case KEY_CALLERS:
        options->callers = argument;
        return 0;
    case KEY_CALLEES:
        options->callees = argument;
        return 0;
    case KEY_THREADS:
        options->group = GROUP_THREAD;
        return 0;
    case KEY_BY:
        options->group = report_group_named(argument);
        if (options->group == REPORT_GROUPS)
            argp_error(state, "--by is process, thread, tier, runtime or kind, not '%s'",
                       printable_copy(argument));
        return 0;
    case KEY_GPROF:
        options->gprof = true;
        return 0;
    case KEY_JSON:
        options->json = true;
        return 0;
    case KEY_SORT:
        options->by_total = strcmp(argument, "total") == 0;
        options->is_chosen = true;
        if (!options->by_total && strcmp(argument, "self") != 0)
            argp_error(state, "--sort is self or total, not '%s'", printable_copy(argument));
        return 0;
    case KEY_JIT:
        options->jit_only = options->is_chosen = true;
        return 0;
    case KEY_FULL_NAMES:
        options->full_names = true;
        return 0;
    case 'n':
        options->rows = view_rows(argument, state);
        return 0;
    case ARGP_KEY_END:
        check_options(options, state);
        return 0;
    default:
        return view_request_take(&options->request, key, argument, state);
    }
}

const struct argp report_argp = {.options = option_table,
                                 .parser = parse_option,
                                 .args_doc = "[FILE]",
                                 .doc = "Show where the time of a recording went: a row for each "
                                        "function, with its kind and place.\v" VIEW_FILE_DOC
                                        ".\n\n" HELP_EXIT_STATUS};

/* ---- How much is named ---- */

#define LEAST_SHOWN  0.0005 /* less is 0.0 % */
#define MANY_UNKNOWN 0.2

struct named_shares {
    uint64_t named, interpreter, unknown;
};

/* The kernel without its list of names is no more known than a file without symbols, and a guest's
 * code has no names here. */
static bool is_unknown(const struct call_profile *profile, const struct call_frame *frame)
{
    const char *name = call_profile_string(profile, frame->name);
    return strcmp(name, "[unknown]") == 0 || frame->kind == FRAME_UNKNOWN ||
           (frame->kind == FRAME_KERNEL && strcmp(name, "[kernel]") == 0);
}

/* An interpreter's own frame tells no function; one that stands for a function does. */
static struct named_shares count_named(const struct view_input *input)
{
    const struct call_profile *profile = &input->profile;
    struct named_shares shares = {.unknown = input->totals.of_node[0]}; /* they have no frame */
    for (size_t i = 0; i < profile->frame_count; i++) {
        const struct call_frame *frame = &profile->frames[i];
        uint64_t weight = input->totals.self[i];
        if (is_unknown(profile, frame))
            shares.unknown += weight;
        else if (frame->kind == FRAME_INTERPRETER && !frame->tier)
            shares.interpreter += weight;
        else
            shares.named += weight;
    }
    return shares;
}

/* The frame that most of the unknown samples have; NULL: that is none. */
static const struct call_frame *most_unknown(const struct view_input *input)
{
    const struct call_profile *profile = &input->profile;
    const struct call_frame *most = NULL;
    uint64_t best = 0;
    for (size_t i = 0; i < profile->frame_count; i++)
        if (input->totals.self[i] > best && is_unknown(profile, &profile->frames[i])) {
            best = input->totals.self[i];
            most = &profile->frames[i];
        }
    return most;
}

/* Why most of the JIT code's samples that are unknown are that; NULL: there are none, or no
 * process logged code and perfjit inject kept no reasons. */
static const char *main_cause(const struct view_input *input, struct findings *findings)
{
    struct sample_census census = {0};
    const struct census_question question = {.records = &input->recording.records,
                                             .processes = &input->recording.processes,
                                             .timelines = input->recording.timelines};
    const char *cause = NULL;
    bool found = input->recording.processes.count
                     ? kept_census_or_take(&census, &question, findings) == 0
                     : kept_census_read(&census, question.records->file) == 1;
    if (found && census.group_count)
        cause = sample_cause_what(census.groups[0].cause);
    sample_census_free(&census);
    return cause;
}

static bool is_changed(const struct call_profile *profile, uint32_t module)
{
    for (size_t i = 0; i < profile->changed_count; i++)
        if (profile->changed[i] == module)
            return true;
    return false;
}

/* Why most of the unknown samples are that. */
static void put_cause(const struct view_input *input, struct findings *findings)
{
    const struct call_frame *most = most_unknown(input);
    if (!most)
        return;
    const char *module = call_profile_string(&input->profile, most->module);
    const char *name = call_profile_string(&input->profile, most->name);
    bool is_elsewhere = most->kind == FRAME_UNKNOWN && strcmp(name, "[unknown]");
    const char *cause =
        most->kind == FRAME_UNKNOWN && !is_elsewhere ? main_cause(input, findings) : NULL;
    if (is_elsewhere)
        printf(": most is %s, which has no names here", name);
    else if (most->kind == FRAME_KERNEL)
        printf(": the kernel's names are hidden, or another machine's");
    else if (is_changed(&input->profile, most->module))
        printf(": most in %s, which is not the file that ran: it was changed or rebuilt since",
               module);
    else if (most->kind == FRAME_NATIVE)
        printf(": most in %s, whose symbols are missing, or don't name the code", module);
    else if (cause)
        printf(": %s (perfjit check)", cause);
    else if (*module)
        printf(": most in code in memory (%s) that nobody logged (perfjit check)", module);
    else
        printf(": most at addresses for which the recording has no mapping");
}

/* ---- What stacks have in them ---- */

/* What a frame says of the stacks that it is in: the innermost that says something decides. */
enum frame_word { FRAME_SAYS_NOTHING, FRAME_SAYS_NO, FRAME_SAYS_YES };

/* The weight of the samples of whose stacks WORD_OF says yes; CALLERS: the sample's own frame can't
 * say yes.  0 without memory. */
static uint64_t count_stacks(const struct view_input *input,
                             enum frame_word (*word_of)(const struct call_profile *profile,
                                                        const struct call_frame *frame),
                             bool callers)
{
    const struct call_profile *profile = &input->profile;
    uint8_t *words = malloc(profile->frame_count + 1);
    bool *has = calloc(profile->node_count + 1, sizeof *has);
    uint64_t weight = 0;
    for (size_t i = 0; words && has && i < profile->frame_count; i++)
        words[i] = (uint8_t)word_of(profile, &profile->frames[i]);
    for (size_t i = 1; words && has && i < profile->node_count; i++) {
        const struct call_node *node = &profile->nodes[i];
        const uint8_t word = words[node->frame];
        has[i] = word == FRAME_SAYS_NOTHING ? has[node->parent] : word == FRAME_SAYS_YES;
        if (callers && word == FRAME_SAYS_YES ? has[node->parent] : has[i])
            weight += input->totals.of_node[i];
    }
    free(words);
    free(has);
    return weight;
}

/* Whether stacks were copied, and unwound since. */
static bool were_copied(const struct perf_file *file)
{
    static const char word[] = "dwarf";
    const struct perf_feature *words = perf_features_find(&file->features, PERF_FEATURE_CMDLINE);
    return perf_file_has_stacks(file) ||
           (words && memmem(words->bytes, words->size, word, strlen(word)));
}

/* Of a program that keeps no frame pointers a chain ends at an address that is no code.  Beyond
 * main that means nothing: what calls main has no frame pointer in a static program. */
static enum frame_word unknown_word(const struct call_profile *profile,
                                    const struct call_frame *frame)
{
    const char *name = call_profile_string(profile, frame->name);
    if (strcmp(name, "main") == 0)
        return FRAME_SAYS_NO;
    return frame->kind == FRAME_UNKNOWN && !frame->module && strcmp(name, "[unknown]") == 0
               ? FRAME_SAYS_YES
               : FRAME_SAYS_NOTHING;
}

static void put_unknown_callers(const struct view_input *input)
{
    const struct perf_file *file = &input->recording.input.file;
    if (!file->data || !perf_file_has_chains(file) || were_copied(file))
        return;
    const uint64_t unknown = count_stacks(input, unknown_word, true);
    if ((double)unknown > MANY_UNKNOWN * (double)input->totals.all)
        printf("%.0f %% of the samples have an [unknown] caller: the program keeps no frame "
               "pointers; perf record --call-graph dwarf (perfjit record -g dwarf) finds the "
               "callers of code with unwind tables\n",
               100 * (double)unknown / (double)input->totals.all);
}

/* perfjit's agent in a JVM, with what it calls. */
static enum frame_word agent_word(const struct call_profile *profile,
                                  const struct call_frame *frame)
{
    return strcmp(call_profile_string(profile, frame->module), "libperfjit-java.so") == 0
               ? FRAME_SAYS_YES
               : FRAME_SAYS_NOTHING;
}

/* What the runtime did for the program, where it shows; and perfjit, which is not the program's. */
static void put_activities(const struct view_input *input)
{
    const struct call_profile *profile = &input->profile;
    struct activity_map map;
    uint64_t weights[ACTIVITIES] = {0};
    const char *before = "in the runtime: ";
    bool made = activity_map_make(&map, profile) == 0;
    for (size_t i = 0; made && i < profile->sample_count; i++)
        if (profile_choice_has(&input->choice, &profile->samples[i]))
            weights[activity_of(&map, &profile->samples[i])] +=
                profile_choice_weight(&input->choice, &profile->samples[i]);
    activity_map_free(&map);
    for (int i = ACTIVITY_COLLECTOR; i <= ACTIVITY_COMPILER; i++) {
        double share = (double)weights[i] / (double)input->totals.all;
        if (share < LEAST_SHOWN)
            continue;
        printf("%s%.1f %% %s", before, 100 * share, activity_name((enum activity)i));
        before = ", ";
    }
    const double agent = (double)count_stacks(input, agent_word, false) / (double)input->totals.all;
    if (agent >= LEAST_SHOWN) {
        printf("%s%.1f %% perfjit's agent", before, 100 * agent);
        before = ", ";
    }
    if (*before == ',')
        printf("\n");
}

/* How long threads waited, of those and in the time that are shown; 0: that is shown itself. */
static uint64_t waited_ns(const struct view_input *input)
{
    struct profile_choice waits = input->choice;
    uint64_t sum = 0;
    waits.event = PROFILE_ALL;
    for (size_t i = 0; !input->shows_waits && i < input->profile.sample_count; i++)
        if (input->profile.samples[i].waits &&
            profile_choice_has(&waits, &input->profile.samples[i]))
            sum += profile_choice_period(&waits, &input->profile.samples[i]);
    return sum;
}

/* The last line: what the table is worth. */
static void put_honest_line(const struct view_input *input, struct findings *findings)
{
    const struct named_shares shares = count_named(input);
    const double all = (double)input->totals.all;
    const uint64_t waited = waited_ns(input);
    put_activities(input);
    if (waited)
        printf("beside that, threads waited %.3f s: perfjit report --off-cpu\n",
               (double)waited / 1e9);
    put_unknown_callers(input);
    printf("%.1f %% of the samples named; %.1f %% interpreter; %.1f %% unknown",
           100 * (double)shares.named / all, 100 * (double)shares.interpreter / all,
           100 * (double)shares.unknown / all);
    if ((double)shares.unknown >= LEAST_SHOWN * all)
        put_cause(input, findings);
    printf("\n");
}

/* ---- JSON ---- */

static void put_text(struct json_writer *json, const char *key, const struct call_profile *profile,
                     uint32_t string)
{
    json_text(json, key, call_profile_string(profile, string));
}

/* When and why the runtime gave code of function NUMBER up, where that is known. */
static void put_deopts(struct json_writer *json, const struct report_view *view, uint32_t number)
{
    const struct call_profile *profile = view->profile;
    const uint64_t first_ns = profile_choice_first_ns(NULL, profile);
    bool any = false;
    for (size_t i = 0; i < profile->deopt_count; i++) {
        const struct profile_deopt *deopt = &profile->deopts[i];
        if (!report_has_deopt(view, deopt, number))
            continue;
        if (!any)
            json_begin_array(json, "deopts");
        any = true;
        json_begin_object(json, NULL);
        json_decimal(json, "seconds", (double)(int64_t)(deopt->time_ns - first_ns) / 1e9, 6);
        json_number(json, "pid", deopt->pid);
        put_text(json, "reason", profile, deopt->reason);
        put_text(json, "kind", profile, deopt->kind);
        put_text(json, "place", profile, deopt->place);
        json_end_object(json);
    }
    if (any)
        json_end_array(json);
}

static void put_function(struct json_writer *json, const struct report_view *view, uint32_t number)
{
    const struct profile_function *function = &view->functions->items[number];
    char kinds[96];
    report_put_kinds(view, number, kinds, sizeof kinds);
    json_begin_object(json, NULL);
    json_number(json, "self", view->totals->function_self[number]);
    json_number(json, "total", view->totals->function_total[number]);
    put_text(json, "name", view->profile, function->name);
    put_text(json, "module", view->profile, function->module);
    put_text(json, "file", view->profile, function->file);
    json_number(json, "line", function->line);
    json_number(json, "column", function->column);
    json_text(json, "kind", kinds);
    put_deopts(json, view, number);
    json_end_object(json);
}

static int put_functions(struct json_writer *json, const struct report_view *view)
{
    size_t count = 0;
    uint32_t *order = function_table_order(view, &count);
    for (size_t i = 0; order && i < count; i++)
        put_function(json, view, order[i]);
    free(order);
    return order ? 0 : -1;
}

/* What the recording itself lacks: of all events, and of all processes. */
static void put_lacks(struct json_writer *json, const struct view_input *input)
{
    const struct losses *losses = &input->recording.records.losses;
    json_begin_object(json, "lost");
    json_number(json, "samples", losses->samples);
    json_number(json, "records", losses->records);
    json_number(json, "traces", losses->traces);
    json_fraction(json, "share", losses_share(losses), 6);
    json_end_object(json);
    json_begin_object(json, "cut_chains");
    json_number(json, "chains", input->cuts.cut);
    json_number(json, "frames", input->cuts.frames);
    json_end_object(json);
}

static int put_json(const struct view_input *input, const struct report_view *view,
                    const struct report_options *options)
{
    const struct named_shares shares = count_named(input);
    const struct profile_event *event = &view->profile->events[view->choice.event];
    const bool functions = options->group == REPORT_GROUPS;
    struct json_writer json = {.stream = stdout};
    size_t samples = 0;
    for (size_t i = 0; i < view->profile->sample_count; i++)
        samples += profile_choice_has(&view->choice, &view->profile->samples[i]);
    json_begin_object(&json, NULL);
    put_text(&json, "event", view->profile, event->name);
    json_text(&json, "unit",
              view->choice.weight == WEIGHT_SAMPLES ? "samples"
              : event->counts_ns                    ? "ns"
                                                    : "count");
    json_number(&json, "samples", samples);
    json_number(&json, "total", view->totals->all);
    json_number(&json, "named", shares.named);
    json_number(&json, "interpreter", shares.interpreter);
    json_number(&json, "unknown", shares.unknown);
    json_number(&json, "off_cpu_ns", waited_ns(input));
    put_lacks(&json, input);
    json_begin_array(&json, functions ? "functions" : "rows");
    if (functions ? put_functions(&json, view) : group_table_put(view, options->group, &json))
        return -1;
    json_end_array(&json);
    json_end_object(&json);
    return 0;
}

/* ---- The command ---- */

static int put_calls(const struct report_view *view, const struct report_options *options,
                     struct findings *findings)
{
    const char *name = options->callers ? options->callers : options->callees;
    int found = function_table_put_calls(view, name, !options->callers);
    if (found == 0)
        return report_failure(findings, "no function has '%s' in its name", name);
    return found < 0 ? report_failure(findings, "out of memory") : 0;
}

static bool ends_in(const char *text, const char *end)
{
    size_t bytes = strlen(text), end_bytes = strlen(end);
    return bytes >= end_bytes && strcmp(text + bytes - end_bytes, end) == 0;
}

static enum frame_word python_word(const struct call_profile *profile,
                                   const struct call_frame *frame)
{
    return frame->kind == FRAME_JIT && ends_in(call_profile_string(profile, frame->file), ".py")
               ? FRAME_SAYS_YES
               : FRAME_SAYS_NOTHING;
}

/* Whether most samples have a function of Python in their stacks: the code that runs is the
 * interpreter's, and the functions that people look for only call. */
static bool is_python(const struct view_input *input)
{
    return count_stacks(input, python_word, false) > input->totals.all / 2;
}

static int put_report(const struct view_input *input, const struct report_options *options,
                      struct findings *findings)
{
    const bool python = !options->json && !options->is_chosen && is_python(input);
    const struct report_view view = {.profile = &input->profile,
                                     .functions = &input->functions,
                                     .totals = &input->totals,
                                     .choice = input->choice,
                                     .most_rows = options->rows,
                                     .stream = stdout,
                                     .full_names = options->full_names,
                                     .by_total = options->by_total || python,
                                     .jit_only = options->jit_only || python};
    int result;
    if (options->json)
        result = put_json(input, &view, options);
    else if (options->callers || options->callees)
        result = put_calls(&view, options, findings);
    else if (options->gprof)
        result = gprof_text_put(&view);
    else if (options->group != REPORT_GROUPS)
        result = group_table_put(&view, options->group, NULL);
    else
        result = function_table_put(&view);
    if (python && !options->callers && !options->callees && !options->gprof &&
        options->group == REPORT_GROUPS)
        printf("Python's functions by total; with the interpreter's own: --sort self\n");
    const bool is_table =
        !result && !options->json && !options->gprof && !options->callers && !options->callees;
    if (is_table)
        printf("\n");
    if (!result)
        view_input_put_lacks(input, &options->request,
                             options->json || options->gprof ? stderr : stdout);
    if (is_table)
        put_honest_line(input, findings);
    if (result)
        return findings->failure[0] ? -1 : report_failure(findings, "out of memory");
    if ((fflush(stdout) || ferror(stdout)) && errno != EPIPE) /* a reader may have seen enough */
        return report_failure(findings, "standard output: can't write it: %s", strerror(errno));
    return 0;
}

int report_command(int argc, char **argv)
{
    struct report_options options = {.group = REPORT_GROUPS, .rows = DEFAULT_ROWS};
    struct view_input input = {.path = NULL};
    struct findings findings = {0};
    view_request_begin(&options.request, WEIGHT_PERIOD);
    int result = help_parse(&report_argp, argc, argv, 0, &options)
                     ? report_failure(&findings, "out of memory")
                     : 0;
    result = result || view_input_open(&input, &options.request, &findings) ||
             put_report(&input, &options, &findings);
    view_input_close(&input);
    return view_end(result, &options.request, &findings);
}
