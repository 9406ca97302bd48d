/* See debugger_files.h. */
#include "injector/debug/debugger_files.h"

#include "injector/debug/gdb_script.h"
#include "injector/files/directory_tree.h"
#include "injector/files/temporary_place.h"
#include "injector/files/undo_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *path_in(const char *directory, const char *name)
{
    char *path;
    return asprintf(&path, "%s/%s", directory, name) < 0 ? NULL : path;
}

int debugger_files_make(struct debugger_files *files, struct findings *findings)
{
    *files = (struct debugger_files){0};
    char *directory = path_in(temporary_place(), "perfjit-gdb-XXXXXX");
    if (!directory)
        return report_failure(findings, "out of memory");
    if (!undo_list_make_directory(directory, &files->undo)) {
        report_failure(findings, "%s: can't make it: %s; TMPDIR says where", directory,
                       strerror(errno));
        free(directory);
        return -1;
    }
    files->directory = directory;
    files->symbols = path_in(directory, "symbols");
    files->start = path_in(directory, "start");
    return files->symbols && files->start ? 0 : report_failure(findings, "out of memory");
}

/* ---- Writing ---- */

/* Close STREAM, which is PATH.  Returns 0, or -1 with the failure text set. */
static int finish(FILE *stream, const char *path, struct findings *findings)
{
    if (!stream)
        return report_failure(findings, "%s: can't write it: %s", path, strerror(errno));
    bool bad = ferror(stream);
    return fclose(stream) || bad
               ? report_failure(findings, "%s: can't write it: %s", path, strerror(errno))
               : 0;
}

/* A string of Python's: its escapes are those of JSON. */
static void put_word(FILE *stream, const char *word)
{
    putc('"', stream);
    for (; *word; word++)
        if (*word == '"' || *word == '\\')
            fprintf(stream, "\\%c", *word);
        else if ((unsigned char)*word < ' ')
            fprintf(stream, "\\x%02x", (unsigned char)*word);
        else
            putc(*word, stream);
    putc('"', stream);
}

static int write_start(const struct debugger_files *files, const struct code_table *table,
                       const char *const *refresh, struct findings *findings)
{
    const struct machine *machine = table->snapshot->machine;
    if (!machine->gdb_pc)
        return report_failure(findings,
                              "perfjit gdb: gdb's names for the registers of %s are not known: use "
                              "perfjit symbols",
                              machine->names[0]);
    FILE *stream = fopen(files->start, "wxe");
    if (stream) {
        fprintf(stream, "source %s/perfjit_gdb.py\npython begin(", files->directory);
        char *path = path_in(files->directory, "table.json");
        put_word(stream, path ? path : "");
        free(path);
        fprintf(stream, ", \"%s\", (\"%s\", \"%s\", \"%s\"), [", machine->names[0], machine->gdb_pc,
                machine->gdb_sp, machine->gdb_fp);
        for (; *refresh; refresh++) {
            put_word(stream, *refresh);
            fputs(", ", stream);
        }
        fputs("])\n", stream);
    }
    return finish(stream, files->start, findings);
}

static int write_table(const char *path, const struct code_table *table, struct findings *findings)
{
    FILE *stream = fopen(path, "wxe");
    if (stream)
        code_table_json(table, stream);
    return finish(stream, path, findings);
}

static int write_script(const char *path, struct findings *findings)
{
    FILE *stream = fopen(path, "wxe");
    if (stream)
        fwrite(gdb_script, 1, (size_t)(gdb_script_end - gdb_script), stream);
    return finish(stream, path, findings);
}

int debugger_files_write(const struct debugger_files *files, const struct code_table *table,
                         const char *const *refresh, struct findings *findings)
{
    char *table_path = path_in(files->directory, "table.json");
    char *script_path = path_in(files->directory, "perfjit_gdb.py");
    int result = table_path && script_path ? 0 : report_failure(findings, "out of memory");
    result = result || write_table(table_path, table, findings) ||
             write_script(script_path, findings) || write_start(files, table, refresh, findings);
    free(table_path);
    free(script_path);
    return result ? -1 : 0;
}

int debugger_files_write_lldb(const struct debugger_files *files, const struct code_table *table,
                              struct findings *findings)
{
    FILE *stream = fopen(files->start, "wxe");
    if (stream)
        code_table_lldb(table, stream);
    return finish(stream, files->start, findings);
}

void debugger_files_remove(struct debugger_files *files)
{
    if (files->directory)
        directory_tree_remove(files->directory);
    undo_list_done(files->undo);
    free(files->directory);
    free(files->symbols);
    free(files->start);
    *files = (struct debugger_files){0};
}
