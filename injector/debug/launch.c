/* See launch.h; debugger_files.h describes the debugger's input.
 *
 * Exit status: the debugger's; 1 if it could not be started, or there is no JIT code that is known;
 * 2 usage.
 */
#include "injector/debug/launch.h"

#include "injector/debug/snapshot_images.h"
#include "injector/files/interruption.h"
#include "injector/files/process_stat.h"
#include "injector/files/undo_list.h"
#include "injector/text/printable_text.h"

#include <argp.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_FAILED = 1 };

const struct argp_option launch_options[] = {SNAPSHOT_PROCESS_OPTIONS, SNAPSHOT_FILE_OPTIONS, {0}};

error_t launch_option_take(int key, char *argument, struct argp_state *state)
{
    struct launch_request *options = state->input;
    struct snapshot_request *request = &options->snapshot;
    switch (key) {
    case ARGP_KEY_ARG:
        if (options->program)
            argp_error(state, "unexpected argument '%s'", printable_copy(argument));
        options->program = request->core;
        request->core = argument;
        return 0;
    case ARGP_KEY_END:
        if (request->pid && !options->program) {
            options->program = request->core;
            request->core = NULL;
        }
        if (!request->core == !request->pid)
            argp_error(state, "name a core, or a process with -p PID");
        return 0;
    default:
        return snapshot_request_take(request, key, argument, state);
    }
}

const char *launch_program(const struct launch_request *request, const struct snapshot *snapshot)
{
    const struct snapshot_map *map = snapshot_map_at(snapshot, snapshot->entry);
    if (request->program)
        return request->program;
    return snapshot->entry && map && map->path && access(map->path, R_OK) == 0 ? map->path : NULL;
}

static int prepare_and_debug(const struct launch_request *request, launch_debugger *start,
                             struct debugger_files *files, int *status, struct findings *findings)
{
    struct snapshot_code code = {0};
    struct snapshot_images images = {.dsos = {.fd = -1, .place_fd = -1}};
    interruption_watch_files();
    int result = snapshot_code_open(&code, &request->snapshot, false, findings) ||
                 debugger_files_make(files, findings) ||
                 snapshot_images_write(&images, &code, files->symbols, findings);
    findings_print(findings, stderr);
    result = result || start(request, files, &images.table, status, findings);
    snapshot_images_free(&images);
    snapshot_code_close(&code);
    return result;
}

static bool is_stopped(pid_t pid)
{
    char line[PROCESS_STAT_BYTES];
    const char *state = process_stat_read(line, pid);
    return state && *state == 'T';
}

/* How many of the arguments are perfjit's; *REST: those behind "--". */
static int own_arguments(int argc, char **argv, char ***rest)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0) {
            *rest = argv + i + 1;
            return i;
        }
    return argc;
}

int launch_command(int argc, char **argv, const struct argp *argp, launch_debugger *start)
{
    struct launch_request options = {0};
    struct debugger_files files = {0};
    struct findings findings = {0};
    int status = EXIT_FAILED;
    undo_list_begin();
    argc = own_arguments(argc, argv, &options.rest);
    if (help_parse(argp, argc, argv, 0, &options))
        report_failure(&findings, "out of memory");
    findings.verbose = options.snapshot.verbose;
    const pid_t pid = (pid_t)options.snapshot.pid;
    const bool was_stopped = is_stopped(pid);
    if (!findings.failure[0])
        prepare_and_debug(&options, start, &files, &status, &findings);
    if (findings.failure[0]) {
        printable_line(stderr, "perfjit: %s", findings.failure);
        status = EXIT_FAILED;
    }
    /* A debugger that a signal ends while it attaches leaves the process stopped. */
    if (interruption_by_signal() && !was_stopped && is_stopped(pid))
        kill(pid, SIGCONT);
    debugger_files_remove(&files);
    findings_free(&findings);
    snapshot_request_free(&options.snapshot);
    interruption_pass_on();
    return status;
}
