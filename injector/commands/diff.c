/* perfjit diff: see commands.h. */
#include "injector/commands/commands.h"

#include "injector/arrays/array.h"
#include "injector/compare/bench_sides.h"
#include "injector/compare/diff_json.h"
#include "injector/compare/diff_markdown.h"
#include "injector/compare/diff_page.h"
#include "injector/compare/diff_text.h"
#include "injector/compare/distinct_files.h"
#include "injector/compare/kept_runs/bench_list.h"
#include "injector/compare/same_functions.h"
#include "injector/compare/two_programs.h"
#include "injector/files/input_guard.h"
#include "injector/profile/run_file.h"
#include "injector/profile/view_input.h"
#include "injector/text/file_name.h"
#include "injector/text/plural.h"
#include "injector/text/printable_text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    EXIT_GATE = 4,
    KEY_BASE = 256,
    KEY_NEW,
    KEY_PAIRED,
    KEY_FLOOR,
    KEY_FAIL_ON,
    KEY_MARKDOWN,
    KEY_JSON,
    KEY_HTML,
    KEY_LINES
};
enum { DEFAULT_ROWS = 30 };

enum diff_form { FORM_TEXT, FORM_MARKDOWN, FORM_JSON, FORM_HTML, DIFF_FORMS };

struct diff_options {
    struct view_request request;
    const char **files;
    bool *is_new; /* by file */
    size_t file_count, file_capacity, side_capacity;
    const char *benches[2]; /* in their place: the files are theirs */
    size_t bench_count;
    enum { SIDE_NONE, SIDE_BASE, SIDE_NEW } side;
    bool paired, fail_unknown, fail_slower;
    double floor, fail_share; /* the floor: negative as long as it is not given */
    size_t rows;
    const char *lines_of;
    const char *forms[DIFF_FORMS]; /* where each is to be written; NULL: nowhere */
    char *lists[2];                /* of the benches */
};

static const struct argp_option option_table[] = {
    OPTION_GROUP("Input:"),
    {"base", KEY_BASE, 0, 0, "The recordings that follow are of runs before the change", 0},
    {"new", KEY_NEW, 0, 0, "Those that follow are of runs after it", 0},
    {"paired", KEY_PAIRED, 0, 0,
     "The runs were in turns: the first of both are a pair, the second, ...", 0},
    VIEW_OPTIONS,
    OPTION_GROUP("What is told:"),
    {"floor", KEY_FLOOR, "PERCENT", 0,
     "A smaller change of the total is no change (default: 1%, or the share of --fail-on if that "
     "is less)",
     0},
    {"fail-on", KEY_FAIL_ON, "WHEN", 0,
     "Exit with status 4:\nregression:PERCENT: if the total is slower by that\nunknown: if no "
     "verdict is possible",
     0},
    {"lines", KEY_LINES, "FUNCTION", 0,
     "Lines and instructions of this function as well, in every form", 0},
    {"rows", 'n', "COUNT", 0, "How many functions to print (default: 30; 0: all)", 0},
    OPTION_GROUP("Output:"),
    {"output", 'o', "FILE", 0, "Where to write the text (default: standard output)", 0},
    {"markdown", KEY_MARKDOWN, "FILE", 0,
     "Write it as Markdown as well, less than 1 MiB; - is standard output, and then there is no "
     "text",
     0},
    {"json", KEY_JSON, "FILE", 0, "The same as JSON, all of it (docs/diff.schema.json)", 0},
    {"html", KEY_HTML, "FILE", 0, "The same as a flame graph of what differs", 0},
    VIEW_MESSAGES,
    {0}};

static double share_in(const char *word, struct argp_state *state)
{
    char *end;
    double value = strtod(word, &end);
    if (end == word || (*end && strcmp(end, "%")) || !(value >= 0 && value <= 1e6))
        argp_error(state, "a share is a number of percent such as 2%%, not '%s'",
                   printable_copy(word));
    return value / 100;
}

static error_t add_path(struct diff_options *options, const char *file, bool is_new)
{
    if (array_reserve(options->files, options->file_count, options->file_capacity) ||
        array_reserve(options->is_new, options->file_count, options->side_capacity))
        return ENOMEM;
    options->files[options->file_count] = file;
    options->is_new[options->file_count++] = is_new;
    return 0;
}

/* "a.bench/" is a.bench, in messages as well. */
static const char *without_slashes(char *name)
{
    for (size_t end = strlen(name); end > 1 && name[end - 1] == '/'; end--)
        name[end - 1] = '\0';
    return name;
}

static error_t add_file(struct diff_options *options, char *file, struct argp_state *state)
{
    if (options->side == SIDE_NONE && options->bench_count == 2)
        argp_error(state, "'%s' is one bench too many", printable_copy(file));
    if (options->side == SIDE_NONE) {
        options->benches[options->bench_count++] = without_slashes(file);
        return 0;
    }
    if (options->bench_count)
        argp_error(state, "benches, or --base FILE... --new FILE..., and not both");
    return add_path(options, file, options->side == SIDE_NEW);
}

static void take_gate(struct diff_options *options, const char *word, struct argp_state *state)
{
    static const char regression[] = "regression:";
    if (strcmp(word, "unknown") == 0) {
        options->fail_unknown = true;
    } else if (strncmp(word, regression, strlen(regression)) == 0) {
        options->fail_slower = true;
        options->fail_share = share_in(word + strlen(regression), state);
    } else {
        argp_error(state, "--fail-on is regression:PERCENT or unknown, not '%s'",
                   printable_copy(word));
    }
}

/* A change below the floor is no change, so no gate closes at it.  A gate below the floor, without
 * an option for the floor, means that such a change matters. */
static void set_floor(struct diff_options *options)
{
    static const double usual = 0.01;
    if (options->floor < 0)
        options->floor =
            options->fail_slower && options->fail_share < usual ? options->fail_share : usual;
}

/* Each form in a place of its own. */
static void check_forms(struct diff_options *options, struct argp_state *state)
{
    options->forms[FORM_TEXT] = options->request.output;
    const char *common = distinct_files_common_output(options->forms, DIFF_FORMS);
    if (common)
        argp_error(state, "two forms of the report can't both be written to %s",
                   strcmp(common, "-") ? printable_copy(common) : "standard output");
}

static void check_sides(const struct diff_options *options, struct argp_state *state)
{
    size_t new = 0;
    const struct profile_wish *wish = &options->request.wish;
    const char *number = wish->process ? wish->process : wish->thread;
    if (options->bench_count && number && strspn(number, "0123456789") == strlen(number))
        argp_error(state, "%s: a bench does not keep the numbers of %s",
                   wish->process ? "--process" : "--thread",
                   wish->process ? "processes" : "threads");
    if (options->bench_count &&
        (wish->time.from.form != TIME_NONE || wish->time.to.form != TIME_NONE))
        argp_error(state, "--time: a bench does not keep the times of samples");
    if (options->bench_count && !options->file_count)
        return;
    for (size_t i = 0; i < options->file_count; i++)
        new += options->is_new[i];
    if (!new || new == options->file_count)
        argp_error(state, "both sides need recordings: --base FILE... --new FILE..., or a bench");
    if (options->paired && new * 2 != options->file_count)
        argp_error(state, "--paired needs as many recordings of both sides");
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct diff_options *options = state->input;
    switch (key) {
    case KEY_BASE:
    case KEY_NEW:
        options->side = key == KEY_NEW ? SIDE_NEW : SIDE_BASE;
        return 0;
    case KEY_PAIRED:
        options->paired = true;
        return 0;
    case KEY_FLOOR:
        options->floor = share_in(argument, state);
        return 0;
    case KEY_FAIL_ON:
        take_gate(options, argument, state);
        return 0;
    case KEY_LINES:
        options->lines_of = argument;
        return 0;
    case KEY_MARKDOWN:
    case KEY_JSON:
    case KEY_HTML:
        options->forms[FORM_MARKDOWN + key - KEY_MARKDOWN] = argument;
        return 0;
    case 'n':
        options->rows = view_rows(argument, state);
        return 0;
    case ARGP_KEY_ARG:
        return add_file(options, argument, state);
    case ARGP_KEY_END:
        check_sides(options, state);
        check_forms(options, state);
        set_floor(options);
        return 0;
    default:
        return view_request_take(&options->request, key, argument, state);
    }
}

const struct argp diff_argp = {
    .options = option_table,
    .parser = parse_option,
    .args_doc = "NAME.bench\nBASE.bench NEW.bench\n--base FILE... --new FILE...",
    .doc = "Say what got slower from one set of recordings to another, and whether that is noise.\v"
           "One bench (perfjit bench): its two sides are compared.  Two benches: the last side of "
           "each is compared.  Runs in turns are compared in pairs.  Each recording is one run, "
           "and each function counts with its own time.\n\n" HELP_EXIT_STATUS
           "  4  done, and --fail-on says that it failed\n"};

/* ---- Reading ---- */

/* perf diff takes two recordings, and its users may do so here. */
static int check_bench(const char *path, struct findings *findings)
{
    struct stat status;
    if (stat(path, &status) || S_ISDIR(status.st_mode))
        return 0;
    return report_failure(findings,
                          "%s: is a file, and a bench is a directory; to compare recordings: "
                          "perfjit diff --base FILE... --new FILE...",
                          path);
}

static int check_recording(const char *path, struct findings *findings)
{
    char *list;
    if (asprintf(&list, "%s/" BENCH_LIST_NAME, path) < 0)
        return report_failure(findings, "out of memory");
    bool is_bench = access(list, F_OK) == 0;
    free(list);
    return is_bench
               ? report_failure(findings,
                                "%s: is a bench, and no recording; to compare benches: perfjit "
                                "diff BASE.bench NEW.bench",
                                path)
               : 0;
}

/* Properties that must be the same in all compared runs. */
struct compared_event {
    char *name;
    bool counts_ns;
    enum profile_weight weight;
};

static int check_event(struct compared_event *event, const struct view_input *input,
                       struct findings *findings)
{
    const struct profile_event *own = &input->profile.events[input->choice.event];
    const char *name = call_profile_string(&input->profile, own->name);
    if (!event->name) {
        event->name = strdup(name);
        event->counts_ns =
            profile_weight_is_time(&input->profile, input->choice.event, input->choice.weight);
        event->weight = input->choice.weight;
        return event->name ? 0 : report_failure(findings, "out of memory");
    }
    if (strcmp(event->name, name) || event->weight != input->choice.weight)
        return report_failure(findings,
                              "%s: has another event, %s, than the first, %s: they can't "
                              "be compared",
                              input->path, name, event->name);
    return 0;
}

static int check_files(struct run_set *set, const struct diff_options *options,
                       struct findings *findings)
{
    bool shared;
    const struct distinct_files files = {options->files,
                                         options->is_new,
                                         options->file_count,
                                         (const char *const *)options->lists,
                                         options->bench_count,
                                         options->forms,
                                         DIFF_FORMS};
    if (distinct_files_check(&files, &shared, findings))
        return -1;
    return shared && run_set_add_note(
                         set, "warning: both sides have the same run: it can't differ from itself")
               ? report_failure(findings, "out of memory")
               : 0;
}

/* Runs that bench kept have their losses in the bench's list. */
static int note_lacks(struct run_set *set, const struct view_input *input)
{
    char text[VIEW_LACK_BYTES];
    int result = 0;
    for (size_t i = 0; !result && view_input_lack(input, i, text, sizeof text); i++) {
        char *note, *path = printable_copy(input->path);
        result = !path || asprintf(&note, "warning: %s: %s", path, text) < 0 ? -1 : 0;
        if (!result) {
            result = run_set_add_note(set, note);
            free(note);
        }
        free(path);
    }
    return result;
}

static int read_runs(struct run_set *set, struct diff_options *options,
                     struct compared_event *event, struct findings *findings)
{
    int result = check_files(set, options, findings);
    for (size_t i = 0; i < options->file_count && !result; i++) {
        struct view_input input;
        options->request.input = options->files[i];
        if (!options->bench_count && check_recording(options->files[i], findings))
            return -1;
        result = (options->bench_count ? view_input_open_kept
                                       : view_input_open)(&input, &options->request, findings) ||
                 check_event(event, &input, findings);
        progress_end(&findings->progress);
        if (!result && run_set_add(set, options->is_new[i], &input.profile, &input.choice))
            result = report_failure(findings, "out of memory");
        if (!result && !options->bench_count && note_lacks(set, &input))
            result = report_failure(findings, "out of memory");
        view_input_close(&input);
    }
    return result;
}

/* Runs in turns are pairs, if these are enough to tell anything by. */
static int read_benches(struct run_set *set, struct diff_options *options,
                        struct compared_event *event, struct findings *findings)
{
    struct bench_sides sides;
    for (size_t i = 0; i < options->bench_count; i++)
        if (check_bench(options->benches[i], findings))
            return -1;
    int result = bench_sides_read(&sides, set, options->benches, options->bench_count, findings);
    for (size_t i = 0; i < options->bench_count && !result; i++)
        if (asprintf(&options->lists[i], "%s/" BENCH_LIST_NAME, options->benches[i]) < 0)
            result = report_failure(findings, "out of memory");
    for (size_t i = 0; i < sides.count && !result; i++)
        if (add_path(options, sides.files[i].path, sides.files[i].is_new))
            result = report_failure(findings, "out of memory");
    options->paired |= sides.paired && sides.count >= 2 * LEAST_PAIRS;
    result = result || read_runs(set, options, event, findings);
    if (!result && options->paired && set->base != set->new)
        result = report_failure(findings, "--paired needs as many runs of both sides");
    bench_sides_free(&sides);
    return result;
}

/* ---- The command ---- */

static int put_text(void *context, FILE *stream)
{
    diff_text_put(stream, context);
    return 0;
}

static int put_markdown(void *context, FILE *stream)
{
    return diff_markdown_put(stream, context, MARKDOWN_MOST_BYTES);
}

static int put_json(void *context, FILE *stream)
{
    diff_json_put(stream, context);
    return 0;
}

static int put_html(void *context, FILE *stream)
{
    return diff_page_write(stream, context);
}

/* The text goes to standard output where nothing else does. */
static int write_forms(struct diff_options *options, struct diff_report *report,
                       struct findings *findings)
{
    static int (*const writers[DIFF_FORMS])(void *, FILE *) = {put_text, put_markdown, put_json,
                                                               put_html};
    bool elsewhere = false;
    for (int form = FORM_MARKDOWN; form < DIFF_FORMS; form++)
        elsewhere |= options->forms[form] && strcmp(options->forms[form], "-") == 0;
    if (!options->forms[FORM_TEXT] && !elsewhere)
        options->forms[FORM_TEXT] = "-";
    for (int form = 0; form < DIFF_FORMS; form++)
        if (options->forms[form] &&
            view_write(options->forms[form], writers[form], report, findings))
            return -1;
    return 0;
}

static bool gate_closes(const struct diff_options *options, const struct verdicts *verdicts)
{
    const struct compared_row *total = &verdicts->total;
    if (options->fail_unknown && total->verdict == VERDICT_UNKNOWN)
        return true;
    return options->fail_slower && verdicts_regress(verdicts, options->fail_share);
}

/* A gate that closes has its reason on the terminal, too, if the text goes elsewhere. */
static void say_why(const struct diff_options *options, const struct diff_report *report)
{
    char *head = NULL;
    size_t bytes;
    const char *text = options->forms[FORM_TEXT];
    if (options->request.quiet || (text && strcmp(text, "-") == 0))
        return;
    FILE *stream = open_memstream(&head, &bytes);
    if (!stream)
        return;
    diff_report_put_head(stream, report);
    if (fclose(stream) == 0)
        fprintf(stderr, "perfjit: --fail-on: status 4: %.*s\n", (int)strcspn(head, "\n"), head);
    free(head);
}

/* "old.bench", "old.bench, then new.bench", or how many recordings. */
static char *title_of(const struct diff_options *options)
{
    char *text, *printable;
    int bytes = options->bench_count == 0 ? asprintf(&text, "%zu recording%s", options->file_count,
                                                     plural(options->file_count))
                : options->bench_count == 1
                    ? asprintf(&text, "%s", file_name_of(options->benches[0]))
                    : asprintf(&text, "%s, then %s", options->benches[0], options->benches[1]);
    printable = bytes < 0 ? NULL : printable_copy(text);
    if (bytes >= 0)
        free(text);
    return printable;
}

static int report_on(struct diff_options *options, struct run_set *set,
                     const struct compared_event *event, bool *closes, struct findings *findings)
{
    struct diff_report report = {0};
    char *title = title_of(options);
    int result = two_programs_tell(set) ||
                         diff_report_make(&report, set, options->paired, options->floor) || !title
                     ? report_failure(findings, "out of memory")
                     : 0;
    report.title = title;
    report.most_rows = options->rows;
    report.unit = event->counts_ns                  ? "ns"
                  : event->weight == WEIGHT_SAMPLES ? "samples"
                                                    : event->name;
    result = result || write_forms(options, &report, findings);
    *closes = !result && gate_closes(options, &report.verdicts);
    if (*closes)
        say_why(options, &report);
    diff_report_free(&report);
    free(title);
    return result;
}

static int check_lines(const struct run_set *set, struct findings *findings)
{
    if (!set->lines_of || set->lines_found)
        return 0;
    return report_failure(
        findings, "--lines: no run has samples in a function '%s'; use the name in the report",
        set->lines_of);
}

static int find_same(struct run_set *set, struct findings *findings)
{
    return same_functions_find(set) ? report_failure(findings, "out of memory") : 0;
}

static int compare_runs(struct diff_options *options, bool *closes, struct findings *findings)
{
    struct run_set set;
    struct compared_event event = {0};
    int result = run_set_begin(&set) ? report_failure(findings, "out of memory") : 0;
    set.lines_of = options->lines_of;
    set.keeps_times = options->forms[FORM_HTML] && !options->bench_count;
    result = result ||
             (options->bench_count ? read_benches : read_runs)(&set, options, &event, findings) ||
             check_lines(&set, findings) || find_same(&set, findings) ||
             report_on(options, &set, &event, closes, findings);
    run_set_free(&set);
    free(event.name);
    return result;
}

int diff_command(int argc, char **argv)
{
    struct diff_options options = {.floor = -1, .rows = DEFAULT_ROWS};
    struct findings findings = {0};
    bool closes = false;
    view_request_begin(&options.request, WEIGHT_PERIOD);
    int result = help_parse(&diff_argp, argc, argv, ARGP_IN_ORDER, &options)
                     ? report_failure(&findings, "out of memory")
                     : 0;
    for (int form = 0; form < DIFF_FORMS; form++)
        input_guard_output(options.forms[form]);
    result = result || compare_runs(&options, &closes, &findings);
    free(options.files);
    free(options.is_new);
    free(options.lists[0]);
    free(options.lists[1]);
    int status = view_end(result, &options.request, &findings);
    return closes ? EXIT_GATE : status;
}
