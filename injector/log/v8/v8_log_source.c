/* See v8_log_source.h. */
#include "injector/log/v8/v8_log_source.h"

#include "injector/log/v8/v8_inlines.h"
#include "injector/text/plural.h"

#include <errno.h>
#include <fts.h>
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

/* Scripts that are compiled in memory (tsx, jest, vitest) have their maps in the text that V8
 * compiled.  The dump's lines are of what a script calls itself, if it does. */
static int give_texts(struct source_maps *maps, const struct v8_log *v8)
{
    static const char key[] = "sourceMappingURL=";
    for (size_t i = 0; !maps->options.none && i < v8->source_count; i++) {
        const struct v8_source *source = &v8->sources[i];
        size_t file_bytes, bytes;
        if (source->is_nodes_own ||
            !memmem(source->text.text, source->text.bytes, key, sizeof key - 1))
            continue;
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
    if (!result && give_texts(&processes->source_maps, &v8))
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
    return 0;
}
