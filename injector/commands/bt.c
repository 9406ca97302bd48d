/* perfjit bt: see bt.h; stack_report.h describes the output.
 *
 * Exit status: 0 every stack is printed.  3 the same, but parts of the dumps were skipped.  1 there
 * is no snapshot, or no dump or map of JIT code (native frames are printed all the same).  2 usage.
 */
#include "injector/commands/commands.h"

#include "injector/debug/snapshot_code.h"
#include "injector/debug/stack_report.h"
#include "injector/files/interruption.h"
#include "injector/text/printable_text.h"

#include <argp.h>
#include <errno.h>
#include <string.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_SKIPPED = 3 };

enum { KEY_JSON = 1024 };

struct bt_options {
    struct snapshot_request request;
    bool json;
};

static const struct argp_option option_table[] = {
    OPTION_GROUP("Output:"),
    {"json", KEY_JSON, 0, 0, "Print an object for each thread, one a line", 0},
    SNAPSHOT_PROCESS_OPTIONS,
    SNAPSHOT_FILE_OPTIONS,
    {0}};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct bt_options *options = state->input;
    switch (key) {
    case KEY_JSON:
        options->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (options->request.core)
            argp_error(state, "unexpected argument '%s'", printable_copy(argument));
        options->request.core = argument;
        return 0;
    case ARGP_KEY_END:
        if (!options->request.core == !options->request.pid)
            argp_error(state, "name a core, or a process with -p PID");
        return 0;
    default:
        return snapshot_request_take(&options->request, key, argument, state);
    }
}

const struct argp bt_argp = {
    .options = option_table,
    .parser = parse_option,
    .args_doc = "CORE\n-p PID",
    .doc = "Print the stacks of all threads of a core, or of a running process, with JIT code "
           "named by its dump or perf map.\v" SNAPSHOT_DOC "Exit status:\n"
           "  0  printed\n"
           "  1  there is no core or process, or no dump (native frames are printed all the same)\n"
           "  2  wrong usage\n"
           "  3  printed, but parts of the dumps were skipped, as reported on stderr\n"};

/* ---- The pipeline ---- */

static int print_stacks(struct thread_stacks *stacks, const struct bt_options *options,
                        struct findings *findings)
{
    const struct snapshot *snapshot = stacks->snapshot;
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        if (thread_stack_walk(stacks, &snapshot->threads[i]))
            return report_failure(findings, "out of memory");
        if (options->json)
            stack_report_json(stacks, &snapshot->threads[i]);
        else
            stack_report_text(stacks, &snapshot->threads[i]);
    }
    if (fflush(stdout) || ferror(stdout))
        return report_failure(findings, "standard output: can't write it: %s", strerror(errno));
    return 0;
}

static int backtrace(const struct bt_options *options, struct findings *findings)
{
    struct snapshot_code code = {0};
    struct thread_stacks stacks = {0};
    const char *root = options->request.recording.root;
    interruption_watch_files();
    int result = snapshot_code_open(&code, &options->request, true, findings) ||
                 thread_stacks_begin(&stacks, &code.snapshot, &code.recording.records,
                                     &code.recording.processes, code.recording.timelines, root,
                                     code.time_ns, findings) ||
                 print_stacks(&stacks, options, findings) || interruption_check(findings);
    native_files_report(&stacks.walker.files, findings);
    findings_print(findings, stderr);
    if (!result && code.none)
        result = report_failure(findings, "%s", code.none);
    thread_stacks_end(&stacks);
    snapshot_code_close(&code);
    return result;
}

int bt_command(int argc, char **argv)
{
    struct bt_options options = {0};
    struct findings findings = {0};
    int status = EXIT_FAILED;
    if (help_parse(&bt_argp, argc, argv, 0, &options))
        report_failure(&findings, "out of memory");
    findings.verbose = options.request.verbose;
    if (!findings.failure[0] && !backtrace(&options, &findings))
        status = findings_lost(&findings) ? EXIT_SKIPPED : EXIT_DONE;
    if (findings.failure[0])
        printable_line(stderr, "perfjit: %s", findings.failure);
    findings_free(&findings);
    snapshot_request_free(&options.request);
    return status;
}
