/* perfjit symbols: see symbols.h; code_table.h describes the output.
 *
 * Exit status: 0 written; 3 written, but parts of the dumps were skipped; 1 nothing written; 2
 * usage.
 */
#include "injector/commands/commands.h"

#include "injector/debug/snapshot_images.h"
#include "injector/files/input_guard.h"
#include "injector/files/interruption.h"
#include "injector/text/printable_text.h"

#include <argp.h>
#include <errno.h>
#include <string.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_SKIPPED = 3 };

enum { KEY_JSON = 1024, KEY_CORE };

struct symbols_options {
    struct snapshot_request request;
    const char *output;
    bool json;
};

static const struct argp_option option_table[] = {
    OPTION_GROUP("Output:"),
    {"output", 'o', "DIR", 0, "Where to write the ELF files (default: jit-symbols)", 0},
    {"json", KEY_JSON, 0, 0, "Print the table as one object, with all functions", 0},
    SNAPSHOT_PROCESS_OPTIONS,
    {"core", KEY_CORE, "CORE", 0, "The process that left this core", 0},
    SNAPSHOT_FILE_OPTIONS,
    {0}};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct symbols_options *options = state->input;
    struct snapshot_request *request = &options->request;
    switch (key) {
    case KEY_CORE:
        request->core = argument;
        return 0;
    case 'o':
        options->output = argument;
        return 0;
    case KEY_JSON:
        options->json = true;
        return 0;
    case ARGP_KEY_ARG:
        return recording_request_add_dump(&request->recording, argument);
    case ARGP_KEY_END:
        if ((request->core && request->pid) ||
            (!request->core && !request->pid && !request->recording.dump_count))
            argp_error(state, "name a core with --core, a process with -p PID, or a dump");
        return 0;
    default:
        return snapshot_request_take(request, key, argument, state);
    }
}

const struct argp symbols_argp = {
    .options = option_table,
    .parser = parse_option,
    .args_doc = "--core CORE\n-p PID\nFILE.dump...",
    .doc =
        "Write ELF files of the JIT code that was alive in a process: symbols, source lines, "
        "inlined calls and unwind tables for a debugger, and print which is where.\v" SNAPSHOT_DOC
        "In gdb: add-symbol-file FILE -o BASE.  In lldb: target modules add FILE, then target "
        "modules "
        "load --file FILE --slide BASE.\n\n"
        "Exit status:\n"
        "  0  written\n"
        "  1  nothing was written\n"
        "  2  wrong usage\n"
        "  3  written, but parts of the dumps were skipped, as reported on stderr\n"};

static int write_symbols(const struct symbols_options *options, struct findings *findings)
{
    struct snapshot_code code = {0};
    struct snapshot_images images = {.dsos = {.fd = -1, .place_fd = -1}};
    interruption_watch_files();
    input_guard_output(options->output);
    int result = snapshot_code_open(&code, &options->request, false, findings);
    interruption_hold_signals();
    result = result || snapshot_images_write(&images, &code, options->output, findings);
    findings_print(findings, stderr);
    if (!result && options->json)
        code_table_json(&images.table, stdout);
    else if (!result)
        code_table_text(&images.table, stdout);
    if (!result && (fflush(stdout) || ferror(stdout)))
        result = report_failure(findings, "standard output: can't write it: %s", strerror(errno));
    snapshot_images_free(&images);
    snapshot_code_close(&code);
    return result;
}

int symbols_command(int argc, char **argv)
{
    struct symbols_options options = {.output = "jit-symbols"};
    struct findings findings = {0};
    int status = EXIT_FAILED;
    if (help_parse(&symbols_argp, argc, argv, 0, &options))
        report_failure(&findings, "out of memory");
    findings.verbose = options.request.verbose;
    if (!findings.failure[0] && !write_symbols(&options, &findings))
        status = findings_lost(&findings) ? EXIT_SKIPPED : EXIT_DONE;
    if (findings.failure[0])
        printable_line(stderr, "perfjit: %s", findings.failure);
    if (findings.is_misuse)
        status = EXIT_USAGE;
    findings_free(&findings);
    snapshot_request_free(&options.request);
    interruption_pass_on();
    return status;
}
