/* perfjit bench: see commands.h. */
#include "injector/run/bench/bench.h"
#include "injector/commands/commands.h"
#include "injector/commands/record_options.h"

#include "injector/text/help_text.h"
#include "injector/text/printable_text.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_MOST = 1000 };
enum {
    KEY_BASE = 400,
    KEY_NEW,
    KEY_BASE_DIR,
    KEY_RUNS,
    KEY_WARM_UP,
    KEY_ORDER,
    KEY_REPEATS,
    KEY_SHOW_OUTPUT
};

static const struct argp_option option_table[] = {
    OPTION_GROUP("What is run:"),
    {"base", KEY_BASE, "COMMAND", 0, "The program before the change", 0},
    {"new", KEY_NEW, "COMMAND", 0, "The program after it", 0},
    {"base-dir", KEY_BASE_DIR, "DIR", 0,
     "Take the base from an earlier bench: its new side, or its only one", 0},
    {"runs", KEY_RUNS, "COUNT", 0, "Runs of each side (default: 10)", 0},
    {"warmup", KEY_WARM_UP, "COUNT", 0, "Runs of each side before those (default: 1)", 0},
    {"repeats", KEY_REPEATS, "COUNT", 0,
     "How many times to rerun pairs that other work disturbed (default: 0)", 0},
    {"order", KEY_ORDER, "ORDER", 0,
     "The order of the runs:\nturns: base new new base base new ... (default)\ntogether: both of a "
     "pair at the same time, on one processor\nblocks: all of the base first",
     0},
    OPTION_GROUP("What is recorded:"),
    RECORD_OPTIONS,
    OPTION_GROUP("Output:"),
    {"output", 'o', "DIR", 0, "The directory to write (default: perfjit.bench)", 0},
    {"show-output", KEY_SHOW_OUTPUT, 0, 0, "Leave the commands' standard output as it is", 0},
    {"verbose", 'v', 0, 0, "Print every finding, and the numbers of each run", 0},
    OPTION_QUIET,
    {0}};

static size_t count_in(const char *option, const char *word, size_t least, struct argp_state *state)
{
    char *end;
    unsigned long value = strtoul(word, &end, 10);
    if (end == word || *end || word[0] == '-' || value < least || value > RUNS_MOST)
        argp_error(state, "%s is a number from %zu to %d, not '%s'", option, least, RUNS_MOST,
                   printable_copy(word));
    return value;
}

static enum bench_order order_in(const char *word, struct argp_state *state)
{
    static const enum bench_order orders[] = {ORDER_TURNS, ORDER_TOGETHER, ORDER_BLOCKS};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        if (!strcmp(word, bench_order_words[orders[i]]))
            return orders[i];
    argp_error(state, "--order is turns, together or blocks, not '%s'", printable_copy(word));
    return ORDER_TURNS;
}

static error_t take_command(struct bench_options *options, enum bench_side side, char *command,
                            struct argp_state *state)
{
    if (options->commands[side])
        argp_error(state, "--%s is there twice", bench_side_words[side]);
    if (!command[strspn(command, " \t\n")])
        argp_error(state, "--%s: there is no command", bench_side_words[side]);
    options->commands[side] = command;
    return 0;
}

static void check(const struct bench_options *options, struct argp_state *state)
{
    if (!options->commands[BENCH_NEW])
        argp_error(state, "name a command: --new 'COMMAND', and --base 'COMMAND' to compare with");
    if (!options->output[0])
        argp_error(state, "-o: there is no name");
    if (options->commands[BENCH_BASE] && options->base_dir)
        argp_error(state, "--base and --base-dir are two bases");
    if (options->order == ORDER_TOGETHER && !options->commands[BENCH_BASE])
        argp_error(state, "--order together needs two commands, --base and --new");
    if (options->order == ORDER_TOGETHER && options->repeats)
        argp_error(state, "--repeats is for runs one after the other: work that disturbs one of "
                          "two simultaneous runs disturbs both");
}

static error_t take_word(struct bench_options *options, int key, char *argument,
                         struct argp_state *state)
{
    switch (key) {
    case KEY_ORDER:
        options->order = order_in(argument, state);
        return 0;
    case KEY_SHOW_OUTPUT:
        options->shows_output = true;
        return 0;
    case 'o':
        options->output = argument;
        return 0;
    case 'v':
        options->verbose = true;
        return 0;
    case 'q':
        options->quiet = true;
        return 0;
    default:
        return record_options_take(&options->record, key, argument, state);
    }
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct bench_options *options = state->input;
    switch (key) {
    case KEY_BASE:
        return take_command(options, BENCH_BASE, argument, state);
    case KEY_NEW:
        return take_command(options, BENCH_NEW, argument, state);
    case KEY_BASE_DIR:
        options->base_dir = argument;
        return 0;
    case KEY_RUNS:
        options->runs = count_in("--runs", argument, 1, state);
        return 0;
    case KEY_REPEATS:
        options->repeats = count_in("--repeats", argument, 0, state);
        return 0;
    case KEY_WARM_UP:
        options->warm_ups = count_in("--warmup", argument, 0, state);
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state,
                   "unexpected argument '%s': a command with its arguments is one word, in "
                   "quotes",
                   printable_copy(argument));
        return 0;
    case ARGP_KEY_END:
        check(options, state);
        return 0;
    default:
        return take_word(options, key, argument, state);
    }
}

const struct argp bench_argp = {
    .options = option_table,
    .parser = parse_option,
    .args_doc = "[--base 'COMMAND' | --base-dir DIR] --new 'COMMAND'",
    .doc = "Run two commands in turns, record each run as perfjit record does, and keep a small "
           "profile of each, for perfjit diff NAME.bench, here or elsewhere.\v"
           "A command with more in it than words goes to the shell.  If a command fails, nothing "
           "is written.\n\n" HELP_EXIT_STATUS};

int bench_command(int argc, char **argv)
{
    struct bench_options options = {.output = "perfjit.bench", .runs = 10, .warm_ups = 1};
    record_options_default(&options.record);
    help_parse(&bench_argp, argc, argv, ARGP_IN_ORDER, &options);
    while (strlen(options.output) > 1 && options.output[strlen(options.output) - 1] == '/')
        ((char *)(uintptr_t)options.output)[strlen(options.output) - 1] = '\0';
    return bench_all(&options);
}
