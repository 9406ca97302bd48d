/* perfjit record: see commands.h. */
#include "injector/run/record/record.h"
#include "injector/commands/commands.h"
#include "injector/commands/record_options.h"

#include "injector/text/help_text.h"
#include "injector/text/printable_text.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_EXIT_STATUS = 300, KEY_KEEP, KEY_DURATION, KEY_OFF_CPU, KEY_DEOPTS };
enum { STACK_BYTES_MOST = 65528, PID_MOST = 1 << 22 };

static const struct argp_option option_table[] = {
    OPTION_GROUP("What is recorded:"),
    {"pid", 'p', "PID[,PID...]", 0, "Record processes that run already, until Ctrl-C or their end",
     0},
    {"duration", KEY_DURATION, "SECONDS", 0, "Record no longer than that; ends the command", 0},
    {"off-cpu", KEY_OFF_CPU, 0, 0,
     "Each switch of a thread, too: where threads waited (perfjit report --off-cpu), how many ran "
     "at a time (--latency)",
     0},
    {"deopts", KEY_DEOPTS, 0, 0,
     "Why V8 gave optimized code up, of node and Deno.  V8 ends a program that can't open one more "
     "file then: not for one that takes another user, or goes on after the recording",
     0},
    RECORD_OPTIONS,
    OPTION_GROUP("Output:"),
    {"output", 'o', "NAME", 0, "Write NAME.perf.data and NAME.perf.data.dso/ (default: perfjit)",
     0},
    {"keep", KEY_KEEP, 0, 0,
     "Leave dumps and perf maps where they are, and perf's own recording as NAME.recording", 0},
    {"exit-status", KEY_EXIT_STATUS, 0, 0,
     "End with the command's exit status, or 128 and the signal that ended it", 0},
    {"verbose", 'v', 0, 0, "Print every finding, and what was read and written", 0},
    OPTION_QUIET,
    {0}};

static void take_stacks(struct record_options *options, const char *argument,
                        struct argp_state *state)
{
    char *end = NULL;
    unsigned long bytes = RECORD_STACKS_BYTES;
    if (strcmp(argument, "none") == 0) {
        options->stacks = NULL;
        return;
    }
    if (strcmp(argument, "fp") == 0 || strcmp(argument, "lbr") == 0) {
        options->stacks = argument;
        return;
    }
    if (strncmp(argument, "dwarf", 5) || (argument[5] && argument[5] != ','))
        argp_error(state, "-g is fp, dwarf, dwarf,BYTES or none, not '%s'",
                   printable_copy(argument));
    if (argument[5])
        bytes = strtoul(argument + 6, &end, 10);
    if ((end && *end) || bytes == 0 || bytes % 8 || bytes > STACK_BYTES_MOST)
        argp_error(state, "-g dwarf,BYTES: a multiple of 8, at most %d", STACK_BYTES_MOST);
    snprintf(options->stacks_text, sizeof options->stacks_text, "dwarf,%lu", bytes);
    options->stacks = options->stacks_text;
}

static void take_number(const char *option, const char *argument, double most, double *value,
                        struct argp_state *state)
{
    char *end;
    *value = strtod(argument, &end);
    if (*end || end == argument || !(*value > 0) || *value > most)
        argp_error(state, "%s is a number above 0, up to %.0f, not '%s'", option, most,
                   printable_copy(argument));
}

static bool is_taken(const struct record_options *options, pid_t pid)
{
    size_t i = 0;
    while (i < options->pid_count && options->pids[i] != pid)
        i++;
    return i < options->pid_count;
}

/* ARGUMENT is as long as the numbers that are taken from it, or longer. */
static void write_pids(const struct record_options *options, char *argument)
{
    for (size_t i = 0; i < options->pid_count; i++)
        argument += sprintf(argument, "%s%d", i ? "," : "", (int)options->pids[i]);
}

/* A process that is named twice is one: perf would sample it twice. */
static void take_pids(struct record_options *options, char *argument, struct argp_state *state)
{
    options->pid_text = argument;
    options->pid_count = 0;
    for (const char *at = argument;; at++) {
        char *end = argument; /* argp_error does not return, but not every compiler knows */
        unsigned long pid = *at >= '0' && *at <= '9' ? strtoul(at, &end, 10) : 0;
        if (!pid || pid > PID_MOST || (*end && *end != ','))
            argp_error(state, "-p PID, or PID,PID,...: not '%s'", printable_copy(argument));
        if (options->pid_count == RECORD_PIDS_MOST)
            argp_error(state, "-p: at most %d processes", RECORD_PIDS_MOST);
        if (!is_taken(options, (pid_t)pid))
            options->pids[options->pid_count++] = (pid_t)pid;
        at = end;
        if (!*at)
            break;
    }
    write_pids(options, argument);
}

static void take_runtime(struct record_options *options, const char *argument,
                         struct argp_state *state)
{
    options->no_runtime = strcmp(argument, "none") == 0;
    options->runtime = options->no_runtime ? NULL : runtime_named(argument);
    if (!options->runtime && !options->no_runtime)
        argp_error(state, "--runtime: there is no runtime '%s' here", printable_copy(argument));
}

static void take_name(struct record_options *options, const char *argument,
                      struct argp_state *state)
{
    size_t bytes = strlen(argument);
    if (bytes == 0 || argument[bytes - 1] == '/')
        argp_error(state, "-o NAME: NAME.perf.data is written");
    options->name = argument;
}

void record_options_default(struct record_options *options)
{
    *options = (struct record_options){.hz = "999",
                                       .name = "perfjit",
                                       .perf = "perf",
                                       .stacks = "",
                                       .processor = -1,
                                       .ready = -1,
                                       .go = -1};
}

/* Ranges of numbers are perf's to judge, except for words that would be taken for something
 * else. */
error_t record_options_take(struct record_options *options, int key, char *argument,
                            struct argp_state *state)
{
    double value;
    switch (key) {
    case 'F':
        if (strcmp(argument, "max"))
            take_number("-F", argument, 1e6, &value, state);
        options->hz = argument;
        return 0;
    case 'e':
        options->event = argument;
        return 0;
    case RECORD_KEY_PERF:
        options->perf = argument;
        return 0;
    case 'g':
        take_stacks(options, argument, state);
        return 0;
    case RECORD_KEY_RUNTIME:
        take_runtime(options, argument, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t take_value(struct record_options *options, int key, char *argument,
                          struct argp_state *state)
{
    switch (key) {
    case 'p':
        take_pids(options, argument, state);
        return 0;
    case KEY_DURATION:
        take_number("--duration", argument, 1e9, &options->seconds, state);
        return 0;
    case 'o':
        take_name(options, argument, state);
        return 0;
    default:
        return record_options_take(options, key, argument, state);
    }
}

/* `perf record -p PID sleep 10` is how a recording of ten seconds is made with perf. */
static void take_duration(struct record_options *options, struct argp_state *state)
{
    char **words = options->words;
    if (strcmp(words[0], "sleep") || !words[1] || words[2])
        argp_error(state, "with -p no command is started: --duration SECONDS ends the recording");
    take_value(options, KEY_DURATION, words[1], state);
    options->words = NULL;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct record_options *options = state->input;
    switch (key) {
    case KEY_EXIT_STATUS:
        options->passes_status = true;
        return 0;
    case KEY_OFF_CPU:
        options->off_cpu = true;
        return 0;
    case KEY_DEOPTS:
        options->deopts = true;
        return 0;
    case KEY_KEEP:
        options->keeps = true;
        return 0;
    case 'v':
        options->verbose = true;
        return 0;
    case 'q':
        options->quiet = true;
        return 0;
    case ARGP_KEY_ARG:
        options->words = state->argv + state->next - 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END:
        if (!options->words && !options->pid_count)
            argp_error(state, "name a command, behind --, or a process with -p PID");
        if (options->words && options->pid_count)
            take_duration(options, state);
        return 0;
    default:
        return take_value(options, key, argument, state);
    }
}

const struct argp record_argp = {
    .options = option_table,
    .parser = parse_option,
    .args_doc = "[--] COMMAND [ARGUMENT...]\n-p PID[,PID...]",
    .doc = "Run a command with what its runtime needs to log JIT code, record it with perf, and "
           "write a recording that names and unwinds it: for perf report, perfjit report, and "
           "perfjit flamegraph.\v"
           "Each switch that is set is printed; nothing of it outlives the "
           "run.\n\n" HELP_EXIT_STATUS
           "\nIf a signal ended the command, its last record may be cut short, and that is no 3.  "
           "With --exit-status the status is the command's."};

int record_command(int argc, char **argv)
{
    struct record_options options;
    record_options_default(&options);
    help_parse(&record_argp, argc, argv, ARGP_IN_ORDER, &options);
    return record_and_inject(&options);
}
