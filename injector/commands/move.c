/* perfjit move: see commands.h. */
#include "injector/commands/commands.h"

#include "injector/files/interruption.h"
#include "injector/inject/recording_move.h"
#include "injector/text/help_text.h"
#include "injector/text/printable_text.h"

#include <stdlib.h>
#include <string.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

static const struct argp_option option_table[] = {
    {"copy", 'c', 0, 0, "Copy: what is moved stays where it is as well", 0}, OPTION_QUIET, {0}};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct recording_move_options *options = state->input;
    switch (key) {
    case 'c':
        options->copies = true;
        return 0;
    case 'q':
        options->quiet = true;
        return 0;
    case ARGP_KEY_ARG:
        if (strcmp(argument, "-") == 0)
            argp_error(state, "a stream has no place: name a file");
        if (options->to)
            argp_error(state, "unexpected argument '%s'", printable_copy(argument));
        *(options->from ? &options->to : &options->from) = argument;
        return 0;
    case ARGP_KEY_END:
        if (!options->from)
            argp_error(state, "name a recording");
        if (options->copies && !options->to)
            argp_error(state, "--copy needs a place to copy to");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp move_argp = {
    .options = option_table,
    .parser = parse_option,
    .args_doc = "FILE [TO]",
    .doc = "Move an injected recording together with its ELF files, so that perf goes on finding "
           "them: perf knows them by their paths alone.\v"
           "TO is a file or a directory.  A recording that is there is kept as TO.old.  Without TO "
           "the recording stays where it is and gets the paths that its ELF files have now: for "
           "one that mv, scp or tar moved together with FILE.dso.  ELF files outside of FILE.dso "
           "are copied, for they may be other recordings' as well.\n\n"
           "Exit status:\n"
           "  0  done\n"
           "  1  failed: nothing was moved\n"
           "  2  wrong usage\n"};

int move_command(int argc, char **argv)
{
    struct recording_move_options options = {.from = NULL};
    struct findings findings = {0};
    int status = EXIT_FAILED;
    if (help_parse(&move_argp, argc, argv, 0, &options))
        report_failure(&findings, "out of memory");
    else if (recording_move(&options, &findings) == 0)
        status = EXIT_SUCCESS;
    if (findings.is_misuse)
        status = EXIT_USAGE;
    if (findings.failure[0])
        printable_line(stderr, "perfjit: %s", findings.failure);
    findings_free(&findings);
    interruption_pass_on();
    return status;
}
