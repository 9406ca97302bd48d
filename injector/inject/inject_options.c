/* See inject_options.h. */
#include "injector/inject/inject_options.h"

#include "injector/text/printable_text.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

/* ---- The command line ---- */

enum option_key {
    KEY_LAYOUT = 256,
    KEY_ROWS,
    KEY_DSO_DIR,
    KEY_LIST_QUIRKS,
    KEY_NO_LINES,
    KEY_COMPRESS_DEBUG,
    KEY_STACKS,
    KEY_STITCH,
    KEY_INLINES
};

static const struct argp_option option_table[] = {
    OPTION_GROUP("Input:"),
    {"input", 'i', "FILE", 0,
     "The recording, as FILE alone (default: perf.data); - is standard input", 0},
    RECORDING_FILE_OPTIONS,
    RECORDING_TRUST_OPTIONS,
    OPTION_GROUP("Output:"),
    {"output", 'o', "FILE", 0,
     "Where to write (default: beside the input and named after it, perf.jit.data for perf.data); "
     "- is standard output",
     0},
    {"dso-dir", KEY_DSO_DIR, "DIR", 0, "Where to write the ELF files (default: <output>.dso)", 0},
    {"layout", KEY_LAYOUT, "LAYOUT", 0,
     "How many ELF files are written:\nimage: one for many functions (default)\nfunction: one for "
     "each, as perf inject does",
     0},
    {"rows", KEY_ROWS, "ROWS", 0,
     "What perf report shows as one row.  With --layout function, or where user stacks are kept, "
     "it is body:\nname: all code of one name, in any process (default)\nbody: each compiled "
     "body\nfunction: all code of a function, in any tier",
     0},
    {"no-lines", KEY_NO_LINES, 0, 0, "Leave out source lines and inlined calls", 0},
    {"compress-debug", KEY_COMPRESS_DEBUG, 0, 0,
     "Compress the lines and inlined calls in the ELF files (with zlib)", 0},
    OPTION_GROUP("Call chains:"),
    {"stacks", KEY_STACKS, "WHAT", 0,
     "What becomes of the user stacks of --call-graph dwarf:\nunwind: call chains, without "
     "registers (default)\nkeep: they stay as they are, for perf",
     0},
    {"stitch", KEY_STITCH, 0, 0,
     "If the copy of a stack ends early, take the outer frames of the thread's last whole stack, "
     "provided that it has the same frame there; an inference",
     0},
    {"inlines", KEY_INLINES, "WHERE", 0,
     "Where inlined calls are shown:\ndwarf: in the ELF files' debug info, which perf reads by "
     "addr2line\nframes: as frames in call chains (default if stacks are unwound)\nnone: "
     "nowhere",
     0},
    OPTION_GROUP("Messages:"),
    {"list-quirks", KEY_LIST_QUIRKS, 0, 0,
     "Explain what is reported as \"repaired\", do nothing else", 0},
    {"verbose", 'v', 0, 0, "Print every finding, and what was read and written", 0},
    OPTION_QUIET,
    {0}};

/* The index in WORDS of the argument of OPTION.  WORDS end with NULL and the list of words for
 * messages. */
static size_t choice_of(const char *argument, const char *option, const char *const *words,
                        struct argp_state *state)
{
    size_t i = 0;
    while (words[i] && strcmp(argument, words[i]))
        i++;
    if (!words[i])
        argp_error(state, "--%s is %s, not '%s'", option, words[i + 1], printable_copy(argument));
    return i;
}

/* Options that take one of a few words. */
static error_t parse_choice(struct inject_options *options, int key, char *argument,
                            struct argp_state *state)
{
    static const char *const layouts[] = {"image", "function", NULL, "image or function"};
    static const char *const rows[] = {[ROWS_NAME] = "name",
                                       [ROWS_BODY] = "body",
                                       [ROWS_FUNCTION] = "function",
                                       NULL,
                                       "name, body or function"};
    static const char *const stacks[] = {
        [STACKS_UNWIND] = "unwind", [STACKS_KEEP] = "keep", NULL, "unwind or keep"};
    static const char *const inlines[] = {[INLINES_DWARF] = "dwarf",
                                          [INLINES_FRAMES] = "frames",
                                          [INLINES_NONE] = "none",
                                          NULL,
                                          "dwarf, frames or none"};
    switch (key) {
    case KEY_INLINES:
        options->inlines = (enum inlines)choice_of(argument, "inlines", inlines, state);
        return 0;
    case KEY_LAYOUT:
        options->layout =
            choice_of(argument, "layout", layouts, state) ? LAYOUT_FUNCTION : LAYOUT_IMAGE;
        return 0;
    case KEY_ROWS:
        options->rows = (enum image_rows)choice_of(argument, "rows", rows, state);
        return 0;
    case KEY_STACKS:
        options->stacks = (enum stacks)choice_of(argument, "stacks", stacks, state);
        return 0;
    default:
        return recording_request_take(&options->request, key, argument);
    }
}

/* If there are several -i, the last one counts, as in perf.  So the -i of a script can be
 * replaced. */
static error_t take_input(struct inject_options *options, char *argument, bool is_option,
                          struct argp_state *state)
{
    if (options->input_given && !(is_option && options->input_is_option))
        argp_error(state, "unexpected argument '%s'", printable_copy(argument));
    options->input_given = true;
    options->input_is_option = is_option;
    options->input = argument;
    return 0;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct inject_options *options = state->input;
    switch (key) {
    case 'i':
    case ARGP_KEY_ARG: /* as the commands that only read take it */
        return take_input(options, argument, key == 'i', state);
    case 'o':
        options->output = strdup(argument);
        return options->output ? 0 : ENOMEM;
    case 'v':
        options->verbose = true;
        return 0;
    case 'q':
        options->quiet = true;
        return 0;
    case 'f':
        options->request.any_owner = true;
        return 0;
    case KEY_DSO_DIR:
        options->dso_dir_given = true;
        return (options->dso_dir = strdup(argument)) ? 0 : ENOMEM;
    case KEY_LIST_QUIRKS:
        quirk_print_all(stdout);
        exit(fflush(stdout) || ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS);
    case KEY_NO_LINES:
        options->request.no_lines = true;
        return 0;
    case KEY_COMPRESS_DEBUG:
        options->compress_debug = true;
        return 0;
    case KEY_STITCH:
        options->stitch = true;
        return 0;
    default:
        return parse_choice(options, key, argument, state);
    }
}

const struct argp inject_argp = {
    .options = option_table,
    .parser = parse_option,
    .args_doc = "[FILE]",
    .doc =
        "Rewrite a recording of perf record -k mono so that perf report names JIT-compiled code.\v"
        "The dumps are found through the recording, perf maps by the pids in "
        "it.\n\n" HELP_EXIT_STATUS};

/* ---- Names that were not given ---- */

/* Whether the LENGTH bytes at NAME, the last part of a path, name no recording: standard input, or
 * a directory by its place. */
static bool is_nameless(const char *name, size_t length)
{
    return length == 0 || (length == 1 && (*name == '-' || *name == '.')) ||
           (length == 2 && memcmp(name, "..", 2) == 0);
}

/* Beside the input and named after it: own.data and own both become own.jit.data.  A recording may
 * be a directory, own.data/. */
static int default_output(struct inject_options *options)
{
    static const char suffix[] = ".data";
    const char *input = options->input;
    size_t end = strlen(input), start, suffix_bytes = sizeof suffix - 1;
    while (end > 1 && input[end - 1] == '/')
        end--;
    for (start = end; start && input[start - 1] != '/'; start--)
        ;
    if (is_nameless(input + start, end - start))
        return asprintf(&options->output, "%.*sperf.jit.data", (int)start, input) < 0 ? -1 : 0;
    if (end - start > suffix_bytes && memcmp(input + end - suffix_bytes, suffix, suffix_bytes) == 0)
        end -= suffix_bytes;
    return asprintf(&options->output, "%.*s.jit.data", (int)end, input) < 0 ? -1 : 0;
}

static int complete_options(struct inject_options *options, struct findings *findings)
{
    if (!options->output && default_output(options)) {
        options->output = NULL;
        return report_failure(findings, "out of memory");
    }
    const char *name = strcmp(options->output, "-") ? options->output : "perf.jit.data";
    if (!options->dso_dir && asprintf(&options->dso_dir, "%s.dso", name) < 0) {
        options->dso_dir = NULL;
        return report_failure(findings, "out of memory");
    }
    return 0;
}

static const struct inject_options defaults = {
    .input = "perf.data", .stacks = STACKS_BY_DEFAULT, .inlines = INLINES_BY_DEFAULT};

int inject_options_default(struct inject_options *options, const char *input, const char *output,
                           struct findings *findings)
{
    *options = defaults;
    options->input = input;
    options->output = strdup(output);
    return options->output ? complete_options(options, findings)
                           : report_failure(findings, "out of memory");
}

int inject_options_read(struct inject_options *options, int argc, char **argv,
                        struct findings *findings)
{
    *options = defaults;
    if (help_parse(&inject_argp, argc, argv, ARGP_IN_ORDER, options))
        return report_failure(findings, "out of memory");
    return complete_options(options, findings);
}

void inject_options_free(struct inject_options *options)
{
    free(options->output);
    free(options->dso_dir);
    recording_request_free(&options->request);
}
