/* perfjit check: see commands.h.
 *
 * A recording goes through the same modules as in perfjit inject, up to the timeline; a dump
 * through the same reader.  Nothing is changed but with --repair, which writes a new file.
 *
 * Exit status: 0 sound, every sample in JIT code has a name.  3 something is or would be lost, or
 * is unknown, or tables of JIT code are wrong.  1 can't be read.  2 usage.
 */
#include "injector/commands/commands.h"

#include "injector/check/census/kept_census.h"
#include "injector/check/changed_files.h"
#include "injector/check/dump_report.h"
#include "injector/check/recording_report.h"
#include "injector/files/input_guard.h"
#include "injector/files/interruption.h"
#include "injector/history/recording.h"
#include "injector/log/jitdump/newest_records.h"
#include "injector/recording/default_file.h"
#include "injector/recording/host/injected_image.h"
#include "injector/text/printable_text.h"
#include "jitdump/format/byte_cursor.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_SOUND = 0, EXIT_UNREADABLE = 1, EXIT_USAGE = 2, EXIT_LOST = 3 };

struct check_options {
    const char *records; /* NULL: none is checked */
    struct recording_request request;
    const char *repair;
    bool json, chains, verbose;
    bool wants_default; /* neither a recording nor a dump was named */
    bool gives_dump;    /* by --jitdump, which is of a recording */
};

/* Everything that looking at a recording makes, in the order in which it is made. */
struct inspection {
    struct recording in;
    struct sample_census census;
    struct user_stacks stacks;
    struct chain_census chains;
    struct cut_chains cuts;
    bool has_stacks;
};

/* The status so far, and a worse one. */
static int worse(int status, int other)
{
    if (status == EXIT_UNREADABLE || other == EXIT_UNREADABLE)
        return EXIT_UNREADABLE;
    return status == EXIT_LOST ? status : other;
}

/* ---- A dump ---- */

/* The process that writes it may go on. */
static int add_unwritten(struct jit_dump *dump)
{
    struct findings findings = {0};
    int result = unwritten_source_append(&(struct unwritten_source){0}, dump, dump->pid, &findings);
    findings_print(&findings, stderr);
    findings_free(&findings);
    return result;
}

/* *STAGE is set to the file with its newest records, to be freed, or to NULL. */
static int check_dump(struct report *report, const char *path, char **stage)
{
    struct jit_dump dump;
    struct dump_survey survey;
    char cause[256];
    int status = EXIT_UNREADABLE;
    *stage = NULL;
    if (jit_dump_open(&dump, path, cause, sizeof cause)) {
        printable_line(stderr, "perfjit: %s: %s", path, cause);
        dump_report_unreadable(report, path, cause);
    } else if (add_unwritten(&dump)) {
        printable_line(stderr, "perfjit: %s: out of memory", path);
    } else if (dump_survey_take(&survey, &dump)) {
        printable_line(stderr, "perfjit: %s: %s", path, survey.findings.failure);
        dump_survey_free(&survey);
    } else {
        dump_report(report, &dump, &survey);
        *stage = newest_records_print(&dump);
        status = dump_survey_lost(&survey) ? EXIT_LOST : EXIT_SOUND;
        dump_survey_free(&survey);
    }
    jit_dump_close(&dump);
    return status;
}

static bool is_named(const struct check_options *options, const char *path)
{
    for (size_t i = 0; i < options->request.dump_count; i++)
        if (strcmp(options->request.dumps[i].path, path) == 0)
            return true;
    return false;
}

/* If a process goes on, or was killed, its newest records are reported as well: a short dump has no
 * others. */
static int check_dumps(struct report *report, const struct check_options *options)
{
    int status = EXIT_SOUND;
    report_open_array(report, "dumps", NULL);
    for (size_t i = 0; i < options->request.dump_count; i++) {
        char *stage, *newer = NULL;
        status = worse(status, check_dump(report, options->request.dumps[i].path, &stage));
        if (stage && !is_named(options, stage))
            status = worse(status, check_dump(report, stage, &newer));
        free(stage);
        free(newer);
    }
    report_close_array(report);
    return status;
}

/* ---- A recording ---- */

static struct census_question question_of(const struct inspection *run,
                                          const struct check_options *options)
{
    return (struct census_question){.records = &run->in.records,
                                    .processes = &run->in.processes,
                                    .timelines = run->in.timelines,
                                    .no_perf_map = options->request.no_perf_map,
                                    .has_given = recording_request_gives(&options->request),
                                    .root = options->request.root};
}

/* Stacks are unwound as by perfjit inject --stacks unwind. */
static int count_chains(struct inspection *run, const struct check_options *options,
                        struct findings *findings)
{
    if (!options->chains || !perf_file_has_stacks(&run->in.input.file))
        return 0;
    run->has_stacks = true;
    const struct user_stacks_options wanted = {
        .root = options->request.root, .walked = chain_census_add, .context = &run->chains};
    return user_stacks_unwind(&run->stacks, &wanted, &run->in.records, &run->in.processes,
                              run->in.timelines, findings);
}

static struct chain_question chains_of(const struct inspection *run,
                                       const struct check_options *options)
{
    if (!run->has_stacks)
        return (struct chain_question){.asked = options->chains, .cuts = run->cuts};
    return (struct chain_question){options->chains,
                                   options->verbose,
                                   &run->stacks,
                                   &run->chains,
                                   chain_census_misled(&run->chains, &run->stacks.source),
                                   run->cuts};
}

/* Chains are followed through the same files. */
static int find_changed(struct inspection *run, const struct check_options *options,
                        struct findings *findings)
{
    bool counts_chains = options->chains && perf_file_has_stacks(&run->in.input.file);
    return counts_chains ? 0
                         : changed_files_find(&run->in.records, &run->in.processes,
                                              run->in.timelines, options->request.root, findings);
}

static int inspect(struct inspection *run, const struct check_options *options,
                   struct findings *findings)
{
    /* A recording without dump and map is no failure here: the report explains it. */
    if (recording_open(&run->in, options->records, &options->request, findings) ==
            RECORDING_FAILED ||
        recording_play(&run->in, findings) || find_changed(run, options, findings) ||
        count_chains(run, options, findings))
        return -1;
    const struct census_question question = question_of(run, options);
    if (cut_chains_count(&run->cuts, &run->in.input.file))
        return report_failure(findings, "out of memory");
    if (kept_census_or_take(&run->census, &question, findings))
        return -1;
    interruption_look();
    return interruption_check(findings);
}

static void release_counts(struct inspection *run)
{
    sample_census_free(&run->census);
    user_stacks_free(&run->stacks);
    chain_census_free(&run->chains);
}

static void release(struct inspection *run)
{
    release_counts(run);
    recording_free(&run->in);
}

static int inspect_all(struct inspection *run, const struct check_options *options,
                       struct findings *findings)
{
    int result = inspect(run, options, findings);
    while (result) {
        release_counts(run);
        if (!recording_begin_anew(&run->in, findings))
            break;
        *run = (struct inspection){.in = run->in};
        result = inspect(run, options, findings);
    }
    return result;
}

static int check_profile(struct report *report, const struct check_options *options)
{
    struct inspection run = {.census = {0}};
    struct findings findings = {.quiet = true};
    int status = EXIT_UNREADABLE;
    if (inspect_all(&run, options, &findings)) {
        printable_line(stderr, "perfjit: %s", findings.failure);
    } else {
        const struct census_question question = question_of(&run, options);
        const struct chain_question chains = chains_of(&run, options);
        bool lost = run.census.unknown || run.census.incomplete || findings_lost(&findings) ||
                    chains.misled || losses_any(&run.in.records.losses) ||
                    injected_image_gone(&run.in.records, options->request.root);
        status = lost ? EXIT_LOST : EXIT_SOUND;
        if (recording_report(report, &question, &run.census, &chains, &findings)) {
            printable_line(stderr, "perfjit: out of memory");
            status = EXIT_UNREADABLE;
        }
    }
    release(&run);
    findings_free(&findings);
    return status;
}

/* ---- A repaired copy ---- */

static int repair(struct report *report, const struct check_options *options)
{
    const char *path = options->request.dumps[0].path;
    struct findings findings = {.quiet = true};
    struct dump_repair done;
    struct jit_dump dump;
    char cause[256];
    int status = EXIT_UNREADABLE;
    interruption_hold_signals();
    input_guard_output(options->repair);
    if (jit_dump_open(&dump, path, cause, sizeof cause)) {
        printable_line(stderr, "perfjit: %s: %s", path, cause);
    } else if (dump_repair_write(&done, &dump, options->repair, &findings)) {
        printable_line(stderr, "perfjit: %s", findings.failure);
        status = findings.is_misuse ? EXIT_USAGE : status;
    } else {
        repair_report(report, &done, options->repair);
        status = dump_repair_lost(&done) ? EXIT_LOST : EXIT_SOUND;
    }
    jit_dump_close(&dump);
    findings_free(&findings);
    return status;
}

/* ---- Options ---- */

enum option_key { KEY_JSON = 256, KEY_REPAIR, KEY_CHAINS };

static const struct argp_option option_table[] = {
    OPTION_GROUP("Input:"),
    {"input", 'i', "FILE", 0, "The recording, said as to perf; - is standard input", 0},
    RECORDING_FILE_OPTIONS,
    RECORDING_TRUST_OPTIONS,
    OPTION_GROUP("What is checked:"),
    {"chains", KEY_CHAINS, 0, 0,
     "Unwind the stacks of --call-graph dwarf, and say in which JIT functions and files chains "
     "end, and why: the worst first",
     0},
    OPTION_GROUP("Output:"),
    {"repair", KEY_REPAIR, "OUT", 0,
     "Write a sound copy of the given dump to OUT, which must not exist yet", 0},
    {"json", KEY_JSON, 0, 0, "One JSON object", 0},
    {"verbose", 'v', 0, 0, "With --chains, all functions and files", 0},
    {0}};

/* By its first bytes, or if it has none by its name.  O_NONBLOCK: it may be a FIFO. */
static bool is_dump(const char *path)
{
    uint8_t bytes[4] = {0};
    size_t length = strlen(path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t count = fd < 0 ? 0 : pread(fd, bytes, sizeof bytes, 0);
    if (fd >= 0)
        close(fd);
    struct byte_cursor cursor = byte_cursor_over(bytes, sizeof bytes, false);
    uint32_t magic = cursor_u32(&cursor);
    if (count == sizeof bytes && (magic == JITDUMP_MAGIC || magic == JITDUMP_MAGIC_SWAPPED))
        return true;
    return length > 5 && strcmp(path + length - 5, ".dump") == 0;
}

static error_t take_profile(struct check_options *options, char *argument, struct argp_state *state)
{
    if (options->records)
        argp_error(state, "only one recording can be given: '%s' is a second one",
                   printable_copy(argument));
    options->records = argument;
    return 0;
}

static error_t take_argument(struct check_options *options, char *argument,
                             struct argp_state *state)
{
    if (strcmp(argument, "-") != 0 && is_dump(argument))
        return recording_request_add_dump(&options->request, argument);
    return take_profile(options, argument, state);
}

static error_t take_end(struct check_options *options, struct argp_state *state)
{
    if (options->repair && (options->records || options->request.dump_count != 1))
        argp_error(state, "--repair takes one dump and no recording");
    if (!options->records && (options->request.dump_count == 0 || options->gives_dump))
        options->wants_default = true;
    return 0;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct check_options *options = state->input;
    switch (key) {
    case KEY_JSON:
        options->json = true;
        return 0;
    case 'f':
        options->request.any_owner = true;
        return 0;
    case KEY_CHAINS:
        options->chains = true;
        return 0;
    case 'v':
        options->verbose = true;
        return 0;
    case KEY_REPAIR:
        options->repair = argument;
        return 0;
    case KEY_JITDUMP:
        options->gives_dump = true;
        return recording_request_take(&options->request, key, argument);
    case 'i':
        return take_profile(options, argument, state);
    case ARGP_KEY_ARG:
        return take_argument(options, argument, state);
    case ARGP_KEY_END:
        return take_end(options, state);
    default:
        return recording_request_take(&options->request, key, argument);
    }
}

const struct argp check_argp = {
    .options = option_table,
    .parser = parse_option,
    .args_doc = "[FILE] [FILE.dump...]",
    .doc =
        "Say what is wrong with a recording or a dump, why samples in JIT code stay [unknown], and "
        "what to do.  Nothing is changed.\v"
        "FILE is " DEFAULT_FILES ".  "
        "Dumps that are given beside a recording, or with --jitdump, are used for it, and "
        "checked.  Only the address "
        "of a sample is checked, and with --chains its call chain.\n\n"
        "Exit status:\n"
        "  0  sound, and every sample in JIT code has a name\n"
        "  1  it can't be read\n"
        "  2  wrong usage\n"
        "  3  something is or would be lost, or is unknown, or with --chains: chains are\n"
        "     ended by wrong unwind tables of JIT code\n"};

/* STATUS, unless its input was cut while it was read. */
static int settled(int status)
{
    struct findings findings = {0};
    if (status == EXIT_UNREADABLE || interruption_check(&findings) == 0)
        return status;
    printable_line(stderr, "perfjit: %s", findings.failure);
    return EXIT_UNREADABLE;
}

static int run_check(const struct check_options *options)
{
    struct json_writer json = {.stream = stdout, .in_lines = true};
    struct report report = {.json = options->json ? &json : NULL};
    int status = EXIT_SOUND;
    interruption_watch_files();
    report_open(&report, NULL, NULL);
    if (options->repair) {
        status = repair(&report, options);
    } else {
        if (options->records)
            status = check_profile(&report, options);
        status = worse(status, check_dumps(&report, options));
    }
    status = settled(status);
    report_number(&report, "status", NULL, (uint64_t)status);
    report_close(&report);
    if (fflush(stdout) || ferror(stdout)) {
        printable_line(stderr, "perfjit: standard output: can't write it: %s", strerror(errno));
        return EXIT_UNREADABLE;
    }
    return status;
}

static int name_recording(struct check_options *options)
{
    struct findings findings = {0};
    if (!options->wants_default)
        return 0;
    options->records = default_file(NULL, &findings);
    if (!options->records)
        printable_line(stderr, "perfjit: %s", findings.failure);
    return options->records ? 0 : -1;
}

int check_command(int argc, char **argv)
{
    struct check_options options = {0};
    int status = EXIT_UNREADABLE;
    if (help_parse(&check_argp, argc, argv, 0, &options) == 0)
        status = name_recording(&options) ? EXIT_UNREADABLE : run_check(&options);
    else
        printable_line(stderr, "perfjit: out of memory"); /* it ends by itself for anything else */
    recording_request_free(&options.request);
    interruption_pass_on();
    return status;
}
