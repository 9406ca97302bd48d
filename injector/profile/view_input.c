/* See view_input.h. */
#include "injector/profile/view_input.h"

#include "injector/files/input_guard.h"
#include "injector/files/interruption.h"
#include "injector/files/output_file.h"
#include "injector/profile/profile_events.h"
#include "injector/profile/profile_reading.h"
#include "injector/profile/run_file.h"
#include "injector/profile/waits_text.h"
#include "injector/recording/default_file.h"
#include "injector/recording/host/injected_image.h"
#include "injector/recording/injected_map.h"
#include "injector/text/printable_text.h"
#include "injector/text/shell_word.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_SKIPPED = 3 };

/* ---- The command line ---- */

void view_request_begin(struct view_request *request, enum profile_weight weight)
{
    *request = (struct view_request){.weight = weight};
}

static enum profile_weight weight_named(const char *word, struct argp_state *state)
{
    static const char *const words[] = {
        [WEIGHT_SAMPLES] = "samples", [WEIGHT_PERIOD] = "period", [WEIGHT_LATENCY] = "latency"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i], word) == 0)
            return (enum profile_weight)i;
    argp_error(state, "--weight is samples, period or latency, not '%s'", printable_copy(word));
    return WEIGHT_PERIOD;
}

static void take_pid(struct view_request *request, const char *word, struct argp_state *state)
{
    if (!*word || strspn(word, "0123456789") != strlen(word))
        argp_error(state, "--pid is a number, not '%s'", printable_copy(word));
    request->wish.process = word;
}

static void take_time(struct view_request *request, const char *word, struct argp_state *state)
{
    if (!time_words_read(&request->wish.time, word))
        argp_error(state,
                   "--time is FROM-TO, both in seconds (1.2-1.5), in percent (10%%-20%%) or by the "
                   "clock (14:05:09-14:05:12), not '%s'",
                   printable_copy(word));
}

size_t view_rows(const char *word, struct argp_state *state)
{
    char *end;
    unsigned long value = strtoul(word, &end, 10);
    if (end == word || *end || word[0] == '-')
        argp_error(state, "-n is a number, not '%s'", printable_copy(word));
    return value ? value : SIZE_MAX;
}

static error_t take_input(struct view_request *request, char *argument, struct argp_state *state)
{
    if (request->input)
        argp_error(state, "unexpected argument '%s'", printable_copy(argument));
    request->input = argument;
    return 0;
}

error_t view_request_take(struct view_request *request, int key, char *argument,
                          struct argp_state *state)
{
    switch (key) {
    case 'o':
        request->output = argument;
        return 0;
    case 'v':
        request->verbose = true;
        return 0;
    case 'q':
        request->quiet = true;
        return 0;
    case VIEW_EVENT:
        request->wish.event = argument;
        return 0;
    case VIEW_TIME:
        take_time(request, argument, state);
        return 0;
    case VIEW_THREAD:
        request->wish.thread = argument;
        return 0;
    case VIEW_PROCESS:
        request->wish.process = argument;
        return 0;
    case VIEW_PID:
        take_pid(request, argument, state);
        return 0;
    case VIEW_WEIGHT:
        request->weight = weight_named(argument, state);
        return 0;
    case VIEW_SPAN:
        request->wish.span = argument;
        return 0;
    case VIEW_SPANS:
        request->spans = argument;
        return 0;
    case VIEW_LATENCY:
        request->weight = WEIGHT_LATENCY;
        return 0;
    case VIEW_OFF_CPU:
        request->wish.event = PERF_OFF_CPU_NAME;
        return 0;
    case 'i': /* not diff's, which has no such option */
    case ARGP_KEY_ARG:
        return take_input(request, argument, state);
    default:
        return recording_request_take(&request->recording, key, argument);
    }
}

void view_request_free(struct view_request *request)
{
    recording_request_free(&request->recording);
}

/* ---- Reading ---- */

/* perf finds the names of an injected recording where they were written, and so does this. */
static void warn_of_gone_image(const struct view_input *input, const struct view_request *request)
{
    const char *image = injected_image_gone(&input->recording.records, request->recording.root);
    if (image && !request->quiet)
        printable_line(stderr,
                       "perfjit: %s: is missing: %s was injected with it, and has no names of JIT "
                       "code without it; put it back, or give the recording as perf record wrote "
                       "it",
                       image, input->path);
    char word[SHELL_WORD_BYTES];
    char *moved = injected_image_moved(&input->recording.records, request->recording.root);
    if (moved && !request->quiet)
        printable_line(stderr,
                       "perfjit: %s: was moved with its recording; perf finds the names after "
                       "perfjit move %s",
                       moved, shell_word(word, input->path));
    free(moved);
}

/* An injected recording names its code itself.  A recording without JIT code is a profile, too. */
static int open_recording(struct view_input *input, const struct view_request *request,
                          struct findings *findings)
{
    switch (recording_open(&input->recording, input->path, &request->recording, findings)) {
    case RECORDING_OPEN:
        break;
    case RECORDING_WITHOUT_CODE:
        if (!injected_image(&input->recording.records))
            report_note(findings, "%s", input->recording.processes.no_code);
        warn_of_gone_image(input, request);
        break;
    case RECORDING_FAILED:
        return -1;
    }
    return recording_play(&input->recording, findings);
}

/* A bench has several runs, and nothing says which one is meant. */
static int refuse_bench(const char *path, struct findings *findings)
{
    char *list;
    if (asprintf(&list, "%s/" BENCH_LIST_NAME, path) < 0)
        return report_failure(findings, "out of memory");
    bool is_bench = access(list, F_OK) == 0;
    free(list);
    if (!is_bench)
        return 0;
    char word[SHELL_WORD_BYTES];
    return report_failure(findings,
                          "%s: is a bench, of many runs: perfjit diff %s compares its sides, and "
                          "each file *.run in it is a recording",
                          path, shell_word(word, path));
}

static int read_spans(struct view_input *input, const struct view_request *request,
                      struct findings *findings)
{
    struct marker_spans spans;
    if (input->profile.timeless)
        return 0;
    int result = marker_spans_read(&spans, &input->recording.records, request->recording.root,
                                   request->spans, findings);
    if (!result && profile_spans_add(&input->profile, &spans))
        result = report_failure(findings, "out of memory");
    marker_spans_free(&spans);
    input->profile.has_spans_elsewhere =
        input->profile.span_count &&
        !perf_file_uses_clock(input->recording.records.file, CLOCK_MONOTONIC);
    return result;
}

static int read_once(struct view_input *input, const struct view_request *request,
                     struct findings *findings)
{
    if (open_recording(input, request, findings))
        return -1;
    const struct profile_source source = {&input->recording.records, &input->recording.processes,
                                          input->recording.timelines, request->recording.root,
                                          request->lines};
    if (profile_reading_go(&input->profile, &source, findings) ||
        read_spans(input, request, findings))
        return -1;
    if (input->profile.has_long_chains &&
        cut_chains_count(&input->cuts, input->recording.records.file))
        return report_failure(findings, "out of memory");
    return 0;
}

static int read_recording(struct view_input *input, const struct view_request *request,
                          struct findings *findings)
{
    int result = read_once(input, request, findings);
    while (result && recording_begin_anew(&input->recording, findings)) {
        call_profile_free(&input->profile);
        result = read_once(input, request, findings);
    }
    return result;
}

bool view_input_lack(const struct view_input *input, size_t index, char *text, size_t size)
{
    const struct losses *losses = &input->recording.records.losses;
    if (losses_any(losses) && index-- == 0)
        losses_text(losses, text, size);
    else if (input->cuts.cut && index-- == 0)
        cut_chains_text(&input->cuts, text, size);
    else
        return waits_text(&input->profile, &input->choice, input->shows_waits, index, text, size);
    return true;
}

void view_input_put_lacks(const struct view_input *input, const struct view_request *request,
                          FILE *stream)
{
    char text[VIEW_LACK_BYTES];
    for (size_t i = 0; !request->quiet && view_input_lack(input, i, text, sizeof text); i++)
        printable_line(stream, "%s%s", stream == stderr ? "perfjit: " : "", text);
}

static const char *event_name(const struct view_input *input, size_t event)
{
    return call_profile_string(&input->profile, input->profile.events[event].name);
}

/* The names of the events that have samples (perf adds one that has none, "dummy"), for a person,
 * and the first one's number.  Returns how many there are. */
static size_t list_events(const struct view_input *input, char *text, size_t bytes, uint32_t *first)
{
    bool *has = profile_events_with_samples(&input->profile);
    size_t count = 0;
    text[0] = '\0';
    for (size_t i = 0; has && i < input->profile.event_count; i++) {
        size_t used = strlen(text);
        if (!has[i])
            continue;
        if (!count++)
            *first = (uint32_t)i;
        snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", event_name(input, i));
    }
    free(has);
    return count;
}

static bool is_event(const struct view_input *input, size_t event, const char *word)
{
    const bool waits = input->profile.events[event].off_cpu;
    return strcmp(event_name(input, event), word) == 0 ||
           (waits && strcmp(PERF_OFF_CPU_NAME, word) == 0);
}

static int refuse_waits(const struct view_input *input, struct findings *findings)
{
    return report_failure(
        findings, "%s: does not tell %s; perfjit record --off-cpu records it", input->path,
        input->profile.timeless ? "when threads waited: it has no times (perf record -T)"
        : input->profile.waits.not_all
            ? "when threads waited: of their switches it has a part (perf record -c 1 has all)"
        : input->profile.waits.endless
            ? "when threads were back (perf record --switch-events tells it)"
            : "when threads waited");
}

static int choose_event(struct view_input *input, const struct view_request *request,
                        struct findings *findings)
{
    char events[512];
    size_t count = list_events(input, events, sizeof events, &input->choice.event);
    for (size_t i = 0; request->wish.event && i < input->profile.event_count; i++)
        if (is_event(input, i, request->wish.event)) {
            input->choice.event = (uint32_t)i;
            input->shows_waits = input->profile.events[i].off_cpu;
            return 0;
        }
    if (request->wish.event && strcmp(request->wish.event, PERF_OFF_CPU_NAME) == 0)
        return refuse_waits(input, findings);
    if (request->wish.event)
        return report_failure(findings, "%s: there is no event '%s'; it has: %s", input->path,
                              request->wish.event, events);
    if (count > 1 && !request->quiet)
        printable_line(stderr,
                       "perfjit: %s has several events: %s; this is the first one, --event NAME "
                       "selects another",
                       input->path, events);
    return 0;
}

static int check_weight(const struct view_input *input, struct findings *findings)
{
    if (input->choice.weight != WEIGHT_LATENCY || input->profile.has_running)
        return 0;
    return report_failure(findings,
                          "%s: --latency: the recording does not tell how many threads ran; perf "
                          "record --switch-events and perfjit record --off-cpu record it",
                          input->path);
}

static int count_totals(struct view_input *input, struct findings *findings)
{
    profile_totals_free(&input->totals);
    if (profile_totals_count(&input->totals, &input->profile, &input->functions, &input->choice))
        return report_failure(findings, "out of memory");
    return 0;
}

/* Count the chosen samples by period, or by number if none of them has a period. */
static int count(struct view_input *input, const struct view_request *request,
                 struct findings *findings)
{
    if (profile_functions_find(&input->functions, &input->profile))
        return report_failure(findings, "out of memory");
    if (count_totals(input, findings))
        return -1;
    if (input->totals.all)
        return 0;
    input->choice.weight = WEIGHT_SAMPLES;
    if (count_totals(input, findings))
        return -1;
    if (input->totals.all) {
        report_note(findings, "%s: the samples have no periods: they are counted", input->path);
        return 0;
    }
    return report_failure(
        findings, "%s: has no samples%s%s%s%s%s: there is nothing to show", input->path,
        request->wish.thread ? " of that thread" : "",
        request->wish.process ? " of that process" : "", input->choice.to_ns ? " in that time" : "",
        request->wish.span ? " in those spans" : "", request->wish.event ? " of that event" : "");
}

int view_input_open(struct view_input *input, const struct view_request *request,
                    struct findings *findings)
{
    *input = (struct view_input){.path = default_file(request->input, findings)};
    if (!input->path)
        return -1;
    findings->verbose = request->verbose;
    findings->quiet = request->quiet;
    if (!request->quiet)
        progress_open(&findings->progress, stderr);
    interruption_watch_files();
    input_guard_output(request->output);
    input_guard_input_at(input->path);
    if (request->spans)
        input_guard_input_at(request->spans);
    if (input_guard_check(findings) || refuse_bench(input->path, findings))
        return -1;
    input->choice = (struct profile_choice){.weight = request->weight};
    bool is_kept = run_file_is(input->path);
    if (is_kept ? run_file_read(&input->profile, input->path, RUN_EACH, findings)
                : read_recording(input, request, findings))
        return -1;
    if (!is_kept)
        recording_host_read(&input->host, input->recording.records.file);
    if (choose_event(input, request, findings) || check_weight(input, findings) ||
        profile_choice_make(&input->choice, &input->profile, &request->wish,
                            is_kept ? NULL : &input->host, input->path, findings))
        return -1;
    return count(input, request, findings);
}

int view_input_open_kept(struct view_input *input, const struct view_request *request,
                         struct findings *findings)
{
    *input = (struct view_input){.path = request->input};
    input->choice = (struct profile_choice){
        .weight = request->weight == WEIGHT_LATENCY ? WEIGHT_LATENCY : WEIGHT_PERIOD};
    interruption_watch_files();
    if (run_file_read(&input->profile, request->input,
                      request->weight == WEIGHT_SAMPLES ? RUN_COUNTS : RUN_PERIODS, findings) ||
        choose_event(input, request, findings) || check_weight(input, findings) ||
        profile_choice_make(&input->choice, &input->profile, &request->wish, NULL, input->path,
                            findings))
        return -1;
    if (profile_functions_find(&input->functions, &input->profile))
        return report_failure(findings, "out of memory");
    if (count_totals(input, findings))
        return -1;
    return input->totals.all
               ? 0
               : report_failure(findings, "%s: has no samples%s", input->path,
                                request->wish.thread || request->wish.process ? " of that thread"
                                                                              : "");
}

void view_input_close(struct view_input *input)
{
    profile_choice_free(&input->choice);
    profile_totals_free(&input->totals);
    profile_functions_free(&input->functions);
    call_profile_free(&input->profile);
    recording_free(&input->recording);
}

/* ---- Writing ---- */

static int fail_to_write(const char *path, struct findings *findings)
{
    return report_failure(findings, "%s: can't write it: %s", path, strerror(errno));
}

static int write_standard_output(int (*write)(void *context, FILE *stream), void *context,
                                 struct findings *findings)
{
    if (write(context, stdout))
        return report_failure(findings, "out of memory");
    if ((fflush(stdout) || ferror(stdout)) && errno != EPIPE)
        return fail_to_write("standard output", findings);
    return 0;
}

/* A stream's writes go to an output_file, which has the temporary name. */
struct view_output {
    struct output_file file;
    struct findings *findings;
};

static ssize_t put_bytes(void *cookie, const char *bytes, size_t count)
{
    struct view_output *output = cookie;
    return output_file_write(&output->file, bytes, count, output->findings) ? 0 : (ssize_t)count;
}

int view_write(const char *path, int (*write)(void *context, FILE *stream), void *context,
               struct findings *findings)
{
    struct view_output output = {.file = {.fd = -1}, .findings = findings};
    if (!path || strcmp(path, "-") == 0)
        return write_standard_output(write, context, findings);
    interruption_hold_signals(); /* one would leave the file with the temporary name */
    if (output_file_open_shared(&output.file, path, findings))
        return -1;
    FILE *stream = fopencookie(&output, "w", (cookie_io_functions_t){.write = put_bytes});
    int result = stream ? write(context, stream) : -1;
    if (result)
        report_failure(findings, "out of memory");
    if (stream && (fclose(stream) || findings->failure[0]))
        result = report_failure(findings, "%s: can't write it", path);
    if (!result)
        result =
            output_file_flush(&output.file, findings) || output_file_commit(&output.file, findings);
    output_file_close(&output.file);
    return result ? -1 : 0;
}

int view_end(int result, struct view_request *request, struct findings *findings)
{
    progress_end(&findings->progress);
    fflush(stdout);
    if (!request->quiet)
        findings_print(findings, stderr);
    if (findings->failure[0])
        printable_line(stderr, "perfjit: %s", findings->failure);
    int status = findings->is_misuse       ? EXIT_USAGE
                 : result                  ? EXIT_FAILED
                 : findings_lost(findings) ? EXIT_SKIPPED
                                           : EXIT_DONE;
    findings_free(findings);
    view_request_free(request);
    interruption_pass_on();
    return status;
}
