/* See commands.h. */
#include "injector/commands/commands.h"

#include "injector/debug/command_line.h"
#include "injector/debug/launch.h"

#include <inttypes.h>
#include <stdlib.h>

const struct argp lldb_argp = {.options = launch_options,
                               .parser = launch_option_take,
                               .args_doc = LAUNCH_ARGS_DOC,
                               .doc = "Start lldb on a core, or a process, with the symbols, lines "
                                      "and unwind tables of the JIT code "
                                      "that is alive when lldb begins; code without tables is "
                                      "walked by lldb's own means." LAUNCH_DOC("lldb")};

/* Debian installs lldb-14 as that, and as lldb only by another package. */
enum { NEWEST = 30, OLDEST = 11, NAME_BYTES = 16 };

static void lldb_words(struct command_line *line, const struct launch_request *request,
                       const struct snapshot *snapshot, const char *pid, const char *name,
                       const char *source)
{
    command_line_add(line, name);
    command_line_add_option(line, "-f", launch_program(request, snapshot));
    command_line_add_option(line, "-c", request->snapshot.core);
    command_line_add_option(line, "-p", request->snapshot.core ? NULL : pid);
    command_line_add_option(line, "-o", source);
    for (char **rest = request->rest; rest && *rest; rest++)
        command_line_add(line, *rest);
}

/* Run lldb, or the newest of those whose name tells the version. */
static int run_any(struct command_line *line, int *status, struct findings *findings)
{
    char name[NAME_BYTES] = "lldb";
    bool is_missing = true;
    int result = -1;
    line->items[0] = name;
    for (int version = NEWEST + 1; result && is_missing && version > OLDEST; version--) {
        if (version <= NEWEST)
            snprintf(name, sizeof name, "lldb-%d", version);
        result = command_line_run(line, status, &is_missing, findings);
    }
    if (result && is_missing)
        report_failure(findings,
                       "lldb is not installed: install it, or use perfjit bt, which needs "
                       "none");
    return result;
}

static int start(const struct launch_request *request, const struct debugger_files *files,
                 const struct code_table *table, int *status, struct findings *findings)
{
    char pid[16], *source;
    struct command_line line = {0};
    if (debugger_files_write_lldb(files, table, findings))
        return -1;
    if (asprintf(&source, "command source -s 1 \"%s\"", files->start) < 0)
        return report_failure(findings, "out of memory");
    snprintf(pid, sizeof pid, "%" PRIu32, table->snapshot->pid);
    lldb_words(&line, request, table->snapshot, pid, "lldb", source);
    int result =
        line.failed ? report_failure(findings, "out of memory") : run_any(&line, status, findings);
    free(line.items);
    free(source);
    return result;
}

int lldb_command(int argc, char **argv)
{
    return launch_command(argc, argv, &lldb_argp, start);
}
