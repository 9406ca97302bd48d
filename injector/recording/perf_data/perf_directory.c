/* See perf_directory.h. */
#include "injector/recording/perf_data/perf_directory.h"

#include "injector/files/regular_file.h"
#include "injector/recording/perf_data/perf_unzip.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool perf_directory_is(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static char *join(const char *path, const char *name)
{
    char *joined;
    return asprintf(&joined, "%s/%s", path, name) < 0 ? NULL : joined;
}

char *perf_directory_data(const char *path)
{
    return join(path, "data");
}

static int is_piece(const struct dirent *entry)
{
    const char *number = entry->d_name + strlen("data.");
    return strncmp(entry->d_name, "data.", strlen("data.")) == 0 && *number &&
           number[strspn(number, "0123456789")] == '\0';
}

static int read_piece(struct memory_file *bytes, const char *path, struct findings *findings)
{
    struct stat status;
    int fd = regular_file_open(path, 0, &status), result = 0;
    if (fd < 0)
        return report_failure(findings, "%s: %s%s", path,
                              errno == ENXIO ? "" : "can't open it: ", regular_file_error(errno));
    if (memory_file_read(bytes, fd))
        result = report_failure(findings, "%s: can't read it: %s", path, strerror(errno));
    close(fd);
    return result;
}

static int add_piece(struct perf_plain *plain, const char *path, struct findings *findings)
{
    struct memory_file bytes = {0};
    int result = read_piece(&bytes, path, findings);
    if (!result) {
        struct perf_file piece = {
            .path = path, .data = bytes.data, .size = bytes.size, .records = {0, bytes.size}};
        result = perf_unzip(plain, &piece, findings);
    }
    memory_file_free(&bytes);
    return result;
}

static void report_kcore(const char *path, struct findings *findings)
{
    char *kcore = join(path, "kcore_dir");
    if (kcore && perf_directory_is(kcore))
        report_finding(findings, FINDING_KCORE_LEFT, "%s", kcore);
    free(kcore);
}

int perf_directory_add(struct perf_plain *plain, const char *path, struct findings *findings)
{
    struct dirent **entries;
    int count = scandir(path, &entries, is_piece, versionsort), result = 0;
    if (count < 0)
        return report_failure(findings, "%s: can't read it: %s", path, strerror(errno));
    for (int i = 0; i < count; i++) {
        char *piece = result ? NULL : join(path, entries[i]->d_name);
        if (!result)
            result = piece ? add_piece(plain, piece, findings)
                           : report_failure(findings, "out of memory");
        free(piece);
        free(entries[i]);
    }
    free(entries);
    report_kcore(path, findings);
    return result;
}
