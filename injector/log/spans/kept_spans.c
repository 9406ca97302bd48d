/* See kept_spans.h. */
#include "injector/log/spans/kept_spans.h"

#include "injector/files/output_file.h"
#include "injector/files/regular_file.h"
#include "injector/log/spans/marker_file.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FOLDER_MODE = 0700, MOST_BYTES = 1 << 30 };

static char *folder_of(const char *path)
{
    char *folder;
    return asprintf(&folder, "%s" MARKER_FOLDER_ENDING, path) < 0 ? NULL : folder;
}

/* Call TAKE with the path of each marker file in FOLDER, until it returns another number than 0,
 * which is returned. */
static int for_each(const char *folder, int (*take)(void *context, const char *path), void *context)
{
    DIR *directory = opendir(folder);
    struct dirent *entry;
    int result = 0;
    while (!result && directory && (entry = readdir(directory))) {
        uint32_t pid, tid;
        char *path;
        if (!marker_file_named(entry->d_name, &pid, &tid))
            continue;
        result = asprintf(&path, "%s/%s", folder, entry->d_name) < 0 ? -1 : 0;
        if (!result) {
            result = take(context, path);
            free(path);
        }
    }
    if (directory)
        closedir(directory);
    return result;
}

/* ---- What is kept ---- */

static int remove_file(void *nothing, const char *path)
{
    (void)nothing;
    unlink(path);
    return 0;
}

struct keeping {
    const char *folder;
    struct findings *findings;
};

static int write_file(const char *path, const char *bytes, size_t count, struct findings *findings)
{
    struct output_file file = {.fd = -1};
    const int result = output_file_open(&file, path, findings) ||
                               output_file_write(&file, bytes, count, findings) ||
                               output_file_flush(&file, findings) ||
                               output_file_commit(&file, findings)
                           ? -1
                           : 0;
    output_file_close(&file);
    return result;
}

/* One that can't be read, as of another user, is left out as it is where it is read in place. */
static int keep_file(void *context, const char *path)
{
    const struct keeping *keeping = context;
    const char *name = strrchr(path, '/');
    size_t count;
    char *kept, *bytes = regular_file_bytes(path, MOST_BYTES, &count);
    if (!bytes)
        return 0;
    if ((mkdir(keeping->folder, FOLDER_MODE) && errno != EEXIST) ||
        asprintf(&kept, "%s%s", keeping->folder, name) < 0) {
        free(bytes);
        return report_failure(keeping->findings, "%s: can't keep the spans there: %s",
                              keeping->folder, strerror(errno));
    }
    const int result = write_file(kept, bytes, count, keeping->findings);
    free(kept);
    free(bytes);
    return result;
}

int kept_spans_take(const char *dumps, const char *path, struct findings *findings)
{
    char *folder = folder_of(path);
    struct keeping keeping = {folder, findings};
    if (folder)
        for_each(folder, remove_file, NULL);
    const int result = folder ? for_each(dumps, keep_file, &keeping) : -1;
    free(folder);
    return result ? report_failure(findings, "out of memory") : 0;
}

/* ---- What was kept before ---- */

void kept_spans_put_aside(const char *path, const char *old)
{
    char *folder = folder_of(path), *old_folder = folder_of(old);
    if (folder && old_folder) {
        for_each(old_folder, remove_file, NULL);
        rmdir(old_folder);
        rename(folder, old_folder);
    }
    free(folder);
    free(old_folder);
}
