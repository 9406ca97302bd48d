/* perfjit export: see commands.h. */
#include "injector/commands/commands.h"

#include "injector/profile/export/export_format.h"
#include "injector/profile/view_input.h"
#include "injector/text/printable_text.h"

#include <stdlib.h>
#include <unistd.h>

struct export_options {
    struct view_request request;
    const struct export_format *format;
};

static const struct argp_option option_table[] = {
    OPTION_GROUP("Output:"),
    {"format", 'f', "FORMAT", 0,
     "The format, for which tool; there is no default:\nfolded: flamegraph.pl, inferno\npprof: go "
     "tool pprof\nfirefox: profiler.firefox.com\nspeedscope: speedscope.app\ncallgrind: "
     "kcachegrind",
     0},
    {"output", 'o', "FILE", 0, "Where to write (default: standard output)", 0},
    OPTION_GROUP("Input:"),
    VIEW_INPUT,
    VIEW_OPTIONS,
    VIEW_MESSAGES,
    {0}};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct export_options *options = state->input;
    switch (key) {
    case 'f':
        options->format = export_format_named(argument);
        if (!options->format)
            argp_error(state,
                       "--format is folded, pprof, firefox, speedscope or callgrind, not '%s'",
                       printable_copy(argument));
        return 0;
    case ARGP_KEY_END:
        if (!options->format)
            argp_error(state, "name a format with --format");
        return 0;
    default:
        return view_request_take(&options->request, key, argument, state);
    }
}

const struct argp export_argp = {
    .options = option_table,
    .parser = parse_option,
    .args_doc = "[FILE]",
    .doc = "Write a recording in the format of another tool.  Inlined calls, tiers and the kernel "
           "are marked if the format allows it.\v" VIEW_FILE_DOC
           ".  The format folded counts samples, pprof has samples and the event, the others have "
           "the event; --weight changes that, except for pprof.\n\n" HELP_EXIT_STATUS};

struct export_run {
    const struct export_format *format;
    struct export_request request;
};

static int write_format(void *context, FILE *stream)
{
    const struct export_run *run = context;
    return run->format->write(&run->request, stream);
}

/* The recording's name is text like any other. */
static int put(const struct export_options *options, const struct view_input *input,
               struct findings *findings)
{
    char *title = printable_copy(input->path);
    struct export_run run = {
        options->format,
        {&input->profile, &input->functions, &input->totals, input->choice, title}};
    int result = title ? view_write(options->request.output, write_format, &run, findings)
                       : report_failure(findings, "out of memory");
    free(title);
    return result;
}

int export_command(int argc, char **argv)
{
    struct export_options options = {.format = NULL};
    struct view_input input = {.path = NULL};
    struct findings findings = {0};
    view_request_begin(&options.request, (enum profile_weight) - 1);
    int result = help_parse(&export_argp, argc, argv, 0, &options)
                     ? report_failure(&findings, "out of memory")
                     : 0;
    if (!result && options.request.weight == (enum profile_weight) - 1)
        options.request.weight =
            options.format->write == export_folded ? WEIGHT_SAMPLES : WEIGHT_PERIOD;
    if (!result && options.format->write == export_pprof && !options.request.output &&
        isatty(STDOUT_FILENO))
        result = report_failure(&findings, "pprof's format is not text: use -o FILE");
    options.request.lines = !result && options.format->lines;
    result = result || view_input_open(&input, &options.request, &findings);
    result = result || put(&options, &input, &findings);
    if (!result)
        view_input_put_lacks(&input, &options.request, stderr);
    view_input_close(&input);
    return view_end(result, &options.request, &findings);
}
