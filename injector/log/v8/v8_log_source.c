/* See v8_log_source.h. */
#include "injector/log/v8/v8_log_source.h"

#include "injector/log/code/tier_mark.h"
#include "injector/log/script/script_file.h"
#include "injector/log/v8/v8_inlines.h"
#include "injector/text/plural.h"

#include <errno.h>
#include <fts.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void report_log(const struct v8_log *v8, size_t given, struct findings *findings)
{
    if (v8->bad_lines)
        report_finding(findings, FINDING_INLINES_BROKEN,
                       "%s: %zu line%s of the log can't be read, the first is line %zu", v8->path,
                       v8->bad_lines, plural(v8->bad_lines), v8->first_bad);
    if (!given && v8->inlining_count)
        report_finding(findings, FINDING_LINES_UNMATCHED,
                       "%s: none of its %zu functions with inlined calls is in a dump of this "
                       "recording",
                       v8->path, v8->inlining_count);
    report_note(findings, "%s: %zu of %zu functions with inlined calls are in the recording",
                v8->path, given, v8->inlining_count);
}

static size_t count_lines(const char *text, size_t bytes)
{
    const char *end = text + bytes;
    size_t count = 0;
    while (end > text && (end[-1] == '\n' || end[-1] == '\r'))
        end--;
    for (; (text = memchr(text, '\n', (size_t)(end - text))); text++)
        count++;
    return count;
}

/* What node does in memory to a file of TypeScript leaves each character in its place, and adds a
 * line that names the file. */
static bool has_lines_of_file(const char *path, const char *text, size_t bytes)
{
    static const char name[] = "\n//# sourceURL=";
    size_t file_bytes;
    char *file = script_text_read(path, &file_bytes);
    const char *comment = memmem(text, bytes, name, sizeof name - 1);
    const bool result = !file || (bytes == file_bytes && memcmp(text, file, bytes) == 0) ||
                        count_lines(text, comment ? (size_t)(comment - text) : bytes) ==
                            count_lines(file, file_bytes) ||
                        memmem(text, bytes, file, file_bytes); /* the dearest */
    free(file);
    return result;
}

/* The lines of SOURCE, whose text has no map, are those of its file; else tell that they are not.
 * Deno and swc leave maps out. */
static int look_at_file(const struct v8_source *source, const char *root, struct findings *findings)
{
    size_t file_bytes, bytes;
    char path[PATH_MAX], *file = v8_text_plain(source->file, &file_bytes);
    const bool has_path = file && script_file_path(file, file_bytes, root, path);
    char *text = has_path ? v8_text_plain(source->text, &bytes) : NULL;
    const int result = file && (!has_path || text) ? 0 : -1;
    if (text && !has_lines_of_file(path, text, bytes))
        report_finding(findings, FINDING_SCRIPT_CHANGED, "%s: that text has no source map", path);
    free(file);
    free(text);
    return result;
}

/* Scripts that are compiled in memory (tsx, jest, vitest) have their maps in the text that V8
 * compiled.  The dump's lines are of what a script calls itself, if it does. */
static int give_texts(struct source_maps *maps, const struct v8_log *v8, const char *root,
                      struct findings *findings)
{
    static const char key[] = "sourceMappingURL=";
    for (size_t i = 0; !maps->options.none && i < v8->source_count; i++) {
        const struct v8_source *source = &v8->sources[i];
        size_t file_bytes, bytes;
        if (source->is_nodes_own)
            continue;
        if (!memmem(source->text.text, source->text.bytes, key, sizeof key - 1)) {
            if (look_at_file(source, root, findings))
                return -1;
            continue;
        }
        char *file = v8_text_plain(source->file, &file_bytes);
        char *text = v8_text_plain(source->text, &bytes);
        const int result =
            !file || !text || source_maps_give(maps, line_text_of(file), text, bytes) ||
                    (source->url && source_maps_give(maps, line_text_of(source->url), text, bytes))
                ? -1
                : 0;
        free(file);
        free(text);
        if (result)
            return -1;
    }
    return 0;
}

/* IS_GIVEN: it must be a log. */
static int read_file(struct jit_processes *processes, const char *path, bool is_given,
                     const char *root, struct findings *findings)
{
    struct v8_log v8;
    struct findings own = {0};
    size_t given = 0;
    int result = v8_log_read(&v8, path, is_given ? findings : &own);
    if (result && !is_given) {
        if (result == V8_NO_LOG)
            report_note(findings, "%s", own.failure);
        else
            report_finding(findings, FINDING_INLINES_BROKEN, "%s", own.failure);
        v8_log_free(&v8);
        return 0;
    }
    for (size_t i = 0; !result && i < processes->count; i++)
        result = v8_inlines_give(&processes->items[i].log, &v8, root, &given, findings);
    if (!result)
        report_log(&v8, given, findings);
    if (!result && give_texts(&processes->source_maps, &v8, root, findings))
        result = report_failure(findings, "out of memory");
    v8_log_free(&v8);
    return result;
}

static bool ends_in(const char *name, const char *ending)
{
    const size_t bytes = strlen(name), wanted = strlen(ending);
    return bytes > wanted && strcmp(name + bytes - wanted, ending) == 0;
}

static int compare_names(const FTSENT **left, const FTSENT **right)
{
    return strcmp((*left)->fts_name, (*right)->fts_name);
}

static int read_directory(struct jit_processes *processes, const char *path, const char *root,
                          struct findings *findings)
{
    char *copy = strdup(path), *paths[] = {copy, NULL};
    FTS *files = copy ? fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, compare_names) : NULL;
    int result = files ? 0 : report_failure(findings, "%s: %s", path, strerror(errno));
    for (FTSENT *entry; !result && (entry = fts_read(files));) {
        if (entry->fts_info == FTS_D && entry->fts_level > 0)
            fts_set(files, entry, FTS_SKIP);
        else if (entry->fts_info == FTS_F && ends_in(entry->fts_name, ".log"))
            result = read_file(processes, entry->fts_path, false, root, findings);
    }
    if (files)
        fts_close(files);
    free(copy);
    return result;
}

/* Whether PROCESS has code of V8 in which calls may be inlined. */
static bool may_have_inlines(const struct jit_process *process)
{
    for (size_t i = 0; i < process->log.function_count; i++) {
        const struct jit_function *function = &process->log.functions[i];
        const struct tier_mark mark = tier_mark_of(function->name, function->name_bytes);
        if (mark.form == TIER_OF_V8 && function->dump != NO_DUMP &&
            (memchr(function->name + mark.at, '*', mark.bytes) ||
             memchr(function->name + mark.at, '+', mark.bytes)))
            return true;
    }
    return false;
}

static void report_absent(const struct jit_processes *processes, struct findings *findings)
{
    for (size_t i = 0; i < processes->count; i++)
        if (!processes->items[i].log.has_v8_log && may_have_inlines(&processes->items[i]))
            report_finding(findings, FINDING_INLINES_ABSENT, "process %" PRIu32,
                           processes->items[i].pid);
}

int v8_logs_read(struct jit_processes *processes, const struct v8_log_options *options,
                 struct findings *findings)
{
    for (size_t i = 0; i < options->count; i++) {
        const char *path = options->files[i].path;
        struct stat status;
        const bool is_directory = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
        if (is_directory ? read_directory(processes, path, options->root, findings)
                         : read_file(processes, path, true, options->root, findings))
            return -1;
    }
    if (options->count)
        report_absent(processes, findings);
    return 0;
}
