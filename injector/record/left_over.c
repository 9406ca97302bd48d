/* See left_over.h.  A file goes only if it is a regular one of the same user, was made or changed
 * since the start, and has the pid of a process of the run in its name: perf maps and dumps of
 * others stay. */
#include "injector/record/left_over.h"

#include "injector/dump/dump_name.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLACES = 4 };

struct timespec left_over_now(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return now;
}

static void remove_if_new(const char *path, struct timespec since)
{
    struct stat status;
    if (lstat(path, &status) || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
        status.st_ctim.tv_sec < since.tv_sec ||
        (status.st_ctim.tv_sec == since.tv_sec && status.st_ctim.tv_nsec < since.tv_nsec))
        return;
    unlink(path);
}

/* The directory of PATH, to be freed. */
static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return strdup(".");
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* The pid in "isolate-0xADDRESS-PID-v8.log", as V8 calls what it logs beside a perf map. */
static bool log_pid(const char *name, uint32_t *pid)
{
    uint64_t isolate;
    int end = 0;
    return sscanf(name, "isolate-0x%" SCNx64 "-%" SCNu32 "-v8.log%n", &isolate, pid, &end) == 2 &&
           end && !name[end];
}

static void remove_logs(const struct growing_recording *recording, const char *directory,
                        struct timespec since)
{
    DIR *entries = opendir(directory);
    const struct dirent *entry;
    uint32_t pid;
    char *path;
    while (entries && (entry = readdir(entries)))
        if (log_pid(entry->d_name, &pid) && growing_recording_has_pid(recording, pid) &&
            asprintf(&path, "%s/%s", directory, entry->d_name) >= 0) {
            remove_if_new(path, since);
            free(path);
        }
    if (entries)
        closedir(entries);
}

static void remove_dump(const struct growing_recording *recording, const char *path,
                        struct timespec since)
{
    uint32_t pid;
    char *directory = directory_of(path);
    if (jit_dump_name_pid(path, &pid) && growing_recording_has_pid(recording, pid))
        remove_if_new(path, since);
    if (directory)
        remove_logs(recording, directory, since);
    free(directory);
}

void left_over_remove(const struct growing_recording *recording, struct timespec since)
{
    static const char *const places[PLACES][2] = {
        {"/tmp/perf-", ".map"},
        {"/tmp/jit-", ".dump"},
        {"jit-", ".dump"},
        {"/tmp/perfinfo-", ".map"}}; /* which libraries .NET loaded */
    char path[64];
    for (size_t i = 0; i < recording->dump_count; i++)
        remove_dump(recording, recording->dumps[i].path, since);
    remove_logs(recording, ".", since);
    for (uint32_t pid = 0; recording->pids && pid < GROWING_PIDS; pid++)
        for (size_t i = 0; i < PLACES && growing_recording_has_pid(recording, pid); i++) {
            snprintf(path, sizeof path, "%s%" PRIu32 "%s", places[i][0], pid, places[i][1]);
            remove_if_new(path, since);
        }
}
