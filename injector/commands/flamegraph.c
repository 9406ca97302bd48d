/* perfjit flamegraph: see commands.h. */
#include "injector/commands/commands.h"

#include "injector/profile/flamegraph/flamegraph_svg.h"
#include "injector/profile/view_input.h"
#include "injector/text/file_name.h"
#include "injector/text/printable_text.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_SVG = 256, KEY_TITLE, KEY_WIDTH };
enum { LEAST_WIDTH = 100, USUAL_WIDTH = 1200, MOST_WIDTH = 100000 };

struct flamegraph_options {
    struct view_request request;
    const char *title;
    unsigned width;
    bool svg;
};

static const struct argp_option option_table[] = {
    OPTION_GROUP("Output:"),
    {"output", 'o', "FILE", 0,
     "Where to write (default: FILE.html, or FILE.svg); - is standard output", 0},
    {"svg", KEY_SVG, 0, 0, "A picture without script, to embed", 0},
    {"width", KEY_WIDTH, "PIXELS", 0,
     "How wide the picture of --svg is (default: 1200); a browser fits it into the space "
     "that it has",
     0},
    {"title", KEY_TITLE, "TEXT", 0, "The title (default: the recording's name)", 0},
    OPTION_GROUP("Input:"),
    VIEW_INPUT,
    VIEW_OPTIONS,
    VIEW_MESSAGES,
    {0}};

static unsigned width_in(const char *word, struct argp_state *state)
{
    char *end;
    unsigned long value = strtoul(word, &end, 10);
    if (end == word || *end || value < LEAST_WIDTH || value > MOST_WIDTH)
        argp_error(state, "--width is a number from %d to %d, not '%s'", LEAST_WIDTH, MOST_WIDTH,
                   printable_copy(word));
    return (unsigned)value;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct flamegraph_options *options = state->input;
    switch (key) {
    case KEY_SVG:
        options->svg = true;
        return 0;
    case KEY_WIDTH:
        options->width = width_in(argument, state);
        return 0;
    case KEY_TITLE:
        options->title = argument;
        return 0;
    case ARGP_KEY_END:
        if (options->width && !options->svg)
            argp_error(state, "--width is for --svg: a page is as wide as its window");
        /* fall through */
    default:
        return view_request_take(&options->request, key, argument, state);
    }
}

const struct argp flamegraph_argp = {
    .options = option_table,
    .parser = parse_option,
    .args_doc = "[FILE]",
    .doc = "Write a flame graph: one HTML file that needs no network, with zoom, search, an "
           "inverted view, threads and what ran when.\v" VIEW_FILE_DOC
           ".  The page for - goes to standard output, too.\n\n" HELP_EXIT_STATUS};

struct flamegraph_run {
    struct flamegraph_request request;
    bool svg;
};

static int write_graph(void *context, FILE *stream)
{
    const struct flamegraph_run *run = context;
    return (run->svg ? flamegraph_svg_write : flamegraph_page_write)(&run->request, stream);
}

/* A title is shown as names are. */
static char *title_of(const struct flamegraph_options *options, const struct view_input *input)
{
    return printable_copy(options->title ? options->title : file_name_of(input->path));
}

/* What the recording lacks, in lines; NULL: nothing, or no memory. */
static char *lacks_of(const struct view_input *input)
{
    char text[VIEW_LACK_BYTES], *lines = NULL, *longer;
    for (size_t i = 0; view_input_lack(input, i, text, sizeof text); i++) {
        int bytes = asprintf(&longer, "%s%s\n", lines ? lines : "", text);
        free(lines);
        lines = bytes < 0 ? NULL : longer;
    }
    return lines;
}

static int draw(const struct flamegraph_options *options, const struct view_input *input,
                struct findings *findings)
{
    char *path = NULL, *title = title_of(options, input), *lacks = lacks_of(input);
    const char *output = options->request.output;
    if (!output && strcmp(input->path, "-") == 0)
        output = "-";
    if (!output && asprintf(&path, "%s.%s", input->path, options->svg ? "svg" : "html") < 0)
        path = NULL;
    if (!title || (!output && !path)) {
        free(title);
        free(path);
        free(lacks);
        return report_failure(findings, "out of memory");
    }
    const uint64_t first_ns = profile_choice_first_ns(NULL, &input->profile);
    struct flamegraph_run run = {{.profile = &input->profile,
                                  .totals = &input->totals,
                                  .functions = &input->functions,
                                  .choice = input->choice,
                                  .wall_ns = input->host.has_wall_clock && first_ns
                                                 ? recording_host_wall_ns(&input->host, first_ns)
                                                 : 0,
                                  .width = options->width ? options->width : USUAL_WIDTH,
                                  .title = title,
                                  .lacks = lacks},
                                 options->svg};
    output = output ? output : path;
    int result = view_write(output, write_graph, &run, findings);
    free(lacks);
    if (!result)
        view_input_put_lacks(input, &options->request, stderr);
    if (!result && path && !options->request.quiet)
        printable_line(stderr, "perfjit: %s: open it in a browser", path);
    free(title);
    free(path);
    return result;
}

int flamegraph_command(int argc, char **argv)
{
    struct flamegraph_options options = {.width = 0};
    struct view_input input = {.path = NULL};
    struct findings findings = {0};
    view_request_begin(&options.request, WEIGHT_PERIOD);
    int result = help_parse(&flamegraph_argp, argc, argv, 0, &options)
                     ? report_failure(&findings, "out of memory")
                     : 0;
    result = result || view_input_open(&input, &options.request, &findings);
    input.shows_waits |= !options.svg; /* the page has a view of them */
    result = result || draw(&options, &input, &findings);
    view_input_close(&input);
    return view_end(result, &options.request, &findings);
}
