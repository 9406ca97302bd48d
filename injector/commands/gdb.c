/* perfjit gdb: see gdb.h; debugger_files.h says what gdb is given.
 *
 * Exit status: gdb's; 1 if it could not be started, or there is no JIT code that is known; 2 usage.
 */
#include "injector/commands/gdb.h"

#include "injector/commands/snapshot_images.h"
#include "injector/debugger/debugger_files.h"
#include "injector/files/interruption.h"
#include "injector/text/printable_text.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

extern char **environ;

struct gdb_options {
    struct snapshot_request request;
    const char *program;
    char **rest; /* gdb's own arguments, up to a NULL */
};

/* Words of a command line, up to a NULL. */
struct words {
    char **items;
    size_t count;
    bool failed;
};

static const struct argp_option option_table[] = {SNAPSHOT_OPTIONS, {0}};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct gdb_options *options = state->input;
    struct snapshot_request *request = &options->request;
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

static const struct argp argp = {
    .options = option_table,
    .parser = parse_option,
    .args_doc = "[PROGRAM] CORE [-- GDB-ARGUMENT...]\n-p PID [PROGRAM] [-- GDB-ARGUMENT...]",
    .doc = "Start gdb on a core, or a process, with the symbols, lines and unwind tables of its "
           "JIT code, and frames of code without tables by the frame pointer.  In a process, what "
           "was compiled since is read whenever it stops, or by the command perfjit-refresh.\v"
           "The dumps are found through what the process has mapped. Exit status: gdb's; 1 it "
           "could not be started, or there is no dump; 2 wrong usage."};

/* ---- Command lines ---- */

static void add_word(struct words *words, const char *word)
{
    char **items = realloc(words->items, (words->count + 2) * sizeof *items);
    if (items) {
        words->items = items;
        items[words->count] = (char *)(uintptr_t)word;
        items[words->count + 1] = NULL;
        words->count++;
    }
    words->failed = words->failed || !items;
}

static void add_option(struct words *words, const char *option, const char *value)
{
    if (!value)
        return;
    add_word(words, option);
    add_word(words, value);
}

/* How gdb makes a new table: this program, asked for the symbols of the same process. */
static void refresh_words(struct words *words, const struct snapshot_request *request,
                          const char *pid, const char *program, const char *symbols)
{
    add_word(words, program);
    add_word(words, "symbols");
    add_word(words, "--json");
    add_option(words, "-p", pid);
    add_option(words, "-o", symbols);
    add_option(words, "--root", request->recording.root);
    for (size_t i = 0; i < request->recording.dump_count; i++)
        add_option(words, "--jitdump", request->recording.dumps[i]);
    for (size_t i = 0; i < request->recording.perf_map_count; i++)
        add_option(words, "--perf-map", request->recording.perf_maps[i]);
    if (request->recording.no_perf_map)
        add_word(words, "--no-perf-map");
    if (request->recording.any_owner)
        add_word(words, "--force");
}

/* The file that the process of SNAPSHOT, a core, ran; NULL: gdb finds out. */
static const char *program_of(const struct snapshot *snapshot)
{
    const struct snapshot_map *map = snapshot_map_at(snapshot, snapshot->entry);
    return snapshot->entry && map && map->path && access(map->path, R_OK) == 0 ? map->path : NULL;
}

static void gdb_words(struct words *words, const struct gdb_options *options,
                      const struct snapshot *snapshot, const char *pid, const char *start)
{
    const char *program = options->program ? options->program : program_of(snapshot);
    add_word(words, "gdb");
    add_word(words, "-q");
    if (program)
        add_word(words, program);
    add_option(words, "-c", options->request.core);
    add_option(words, "-p", options->request.core ? NULL : pid);
    add_option(words, "-x", start);
    for (char **rest = options->rest; rest && *rest; rest++)
        add_word(words, *rest);
}

/* ---- gdb ---- */

/* Wait for it; what is typed on the terminal is gdb's. */
static int run(const struct words *words, int *status, struct findings *findings)
{
    pid_t child;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGINT);
    sigaddset(&defaults, SIGQUIT);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGXFSZ);
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawnp(&child, words->items[0], NULL, &attributes, words->items, environ);
    posix_spawnattr_destroy(&attributes);
    if (error == ENOENT)
        return report_failure(findings, "gdb is not installed: install it, or use perfjit bt, "
                                        "which needs none");
    if (error)
        return report_failure(findings, "gdb: can't run it: %s", strerror(error));
    while (waitpid(child, status, 0) < 0 && errno == EINTR)
        ;
    *status = WIFEXITED(*status) ? WEXITSTATUS(*status) : EXIT_FAILED;
    return 0;
}

/* Where this program is, for gdb to run it again. */
static const char *own_path(char path[4096])
{
    ssize_t length = readlink("/proc/self/exe", path, 4095);
    path[length > 0 ? length : 0] = '\0';
    return length > 0 ? path : "perfjit";
}

static int debug(const struct gdb_options *options, const struct debugger_files *files,
                 const struct snapshot_images *images, int *status, struct findings *findings)
{
    char pid[16], path[4096];
    struct words refresh = {0}, gdb = {0};
    snprintf(pid, sizeof pid, "%" PRIu32, images->table.snapshot->pid);
    refresh_words(&refresh, &options->request, pid, own_path(path), files->symbols);
    gdb_words(&gdb, options, images->table.snapshot, pid, files->start);
    int result = refresh.failed || gdb.failed ? report_failure(findings, "out of memory") : 0;
    result =
        result ||
        debugger_files_write(files, &images->table, (const char *const *)refresh.items, findings) ||
        run(&gdb, status, findings);
    free(refresh.items);
    free(gdb.items);
    return result;
}

static int prepare_and_debug(const struct gdb_options *options, struct debugger_files *files,
                             int *status, struct findings *findings)
{
    struct snapshot_code code = {0};
    struct snapshot_images images = {.dsos = {.fd = -1, .place_fd = -1}};
    interruption_watch_files();
    int result = snapshot_code_open(&code, &options->request, false, findings) ||
                 debugger_files_make(files, findings) ||
                 snapshot_images_write(&images, &code, files->symbols, findings);
    findings_print(findings, stderr);
    result = result || debug(options, files, &images, status, findings);
    snapshot_images_free(&images);
    snapshot_code_close(&code);
    return result;
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

int gdb_command(int argc, char **argv)
{
    struct gdb_options options = {0};
    struct debugger_files files = {0};
    struct findings findings = {0};
    int status = EXIT_FAILED;
    argp_err_exit_status = EXIT_USAGE;
    argc = own_arguments(argc, argv, &options.rest);
    if (argp_parse(&argp, argc, argv, 0, NULL, &options))
        report_failure(&findings, "out of memory");
    findings.verbose = options.request.verbose;
    if (!findings.failure[0])
        prepare_and_debug(&options, &files, &status, &findings);
    if (findings.failure[0]) {
        printable_line(stderr, "perfjit: %s", findings.failure);
        status = EXIT_FAILED;
    }
    debugger_files_remove(&files);
    findings_free(&findings);
    snapshot_request_free(&options.request);
    return status;
}
