/* See commands.h. */
#include "injector/commands/commands.h"

#include "injector/debug/command_line.h"
#include "injector/debug/launch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

const struct argp gdb_argp = {
    .options = launch_options,
    .parser = launch_option_take,
    .args_doc = LAUNCH_ARGS_DOC,
    .doc =
        "Start gdb on a core, or a process, with the symbols, lines and unwind tables of its JIT "
        "code, "
        "and frames of code without tables by the frame pointer.  In a process, newly compiled "
        "code is read whenever it stops, or by the command perfjit-refresh." LAUNCH_DOC("gdb")};

/* The command line by which gdb makes a new table: this program, with the symbols command for the
 * same process. */
static void refresh_words(struct command_line *line, const struct snapshot_request *request,
                          const char *pid, const char *program, const char *symbols)
{
    command_line_add(line, program);
    command_line_add(line, "symbols");
    command_line_add(line, "--json");
    command_line_add_option(line, "-p", pid);
    command_line_add_option(line, "-o", symbols);
    command_line_add_option(line, "--root", request->recording.root);
    for (size_t i = 0; i < request->recording.dump_count; i++)
        command_line_add_option(line, "--jitdump", request->recording.dumps[i].text);
    for (size_t i = 0; i < request->recording.perf_map_count; i++)
        command_line_add_option(line, "--perf-map", request->recording.perf_maps[i].text);
    if (request->recording.no_perf_map)
        command_line_add(line, "--no-perf-map");
    if (request->recording.any_owner)
        command_line_add(line, "--force");
}

static void gdb_words(struct command_line *line, const struct launch_request *request,
                      const struct snapshot *snapshot, const char *pid, const char *start)
{
    const char *program = launch_program(request, snapshot);
    command_line_add(line, "gdb");
    command_line_add(line, "-q");
    if (program)
        command_line_add(line, program);
    command_line_add_option(line, "-c", request->snapshot.core);
    command_line_add_option(line, "-p", request->snapshot.core ? NULL : pid);
    command_line_add_option(line, "-x", start);
    for (char **rest = request->rest; rest && *rest; rest++)
        command_line_add(line, *rest);
}

/* The path of this program, for gdb to run it again. */
static const char *own_path(char path[4096])
{
    ssize_t length = readlink("/proc/self/exe", path, 4095);
    path[length > 0 ? length : 0] = '\0';
    return length > 0 ? path : "perfjit";
}

static int start(const struct launch_request *request, const struct debugger_files *files,
                 const struct code_table *table, int *status, struct findings *findings)
{
    char pid[16], path[4096];
    bool is_missing = false;
    struct command_line refresh = {0}, gdb = {0};
    snprintf(pid, sizeof pid, "%" PRIu32, table->snapshot->pid);
    refresh_words(&refresh, &request->snapshot, pid, own_path(path), files->symbols);
    gdb_words(&gdb, request, table->snapshot, pid, files->start);
    int result = refresh.failed || gdb.failed ? report_failure(findings, "out of memory") : 0;
    result = result ||
             debugger_files_write(files, table, (const char *const *)refresh.items, findings) ||
             command_line_run(&gdb, status, &is_missing, findings);
    if (is_missing)
        report_failure(findings, "gdb is not installed: install it, or use perfjit bt, which needs "
                                 "none");
    free(refresh.items);
    free(gdb.items);
    return result;
}

int gdb_command(int argc, char **argv)
{
    return launch_command(argc, argv, &gdb_argp, start);
}
