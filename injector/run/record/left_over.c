/* See left_over.h.  A file is removed only if it is a regular one of the same user and was made or
 * changed since the start.  It must also have the pid of a process of the run in its name.  Perf
 * maps and dumps of others stay.
 *
 * A process in another pid namespace has its pid there in its files' names.  Its dump is known by
 * device and inode, which perf has of each mapping.  The pid there is then known, too, for its
 * other files.  If a process here has the same pid, these files stay, and are reported. */
#include "injector/run/record/left_over.h"

#include "injector/log/jitdump/dump_name.h"
#include "injector/log/jitdump/jit_dump.h"
#include "injector/recording/host/live_process.h"
#include "injector/run/record/run_folder.h"
#include "injector/text/file_name.h"
#include "injector/text/printable_text.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { PLACES = 4, RUNS_MOST = 16 };

struct timespec left_over_now(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return now;
}

static bool is_since(const struct stat *status, struct timespec since)
{
    return status->st_ctim.tv_sec > since.tv_sec ||
           (status->st_ctim.tv_sec == since.tv_sec && status->st_ctim.tv_nsec >= since.tv_nsec);
}

static bool is_new(const char *path, struct timespec since, struct stat *status)
{
    return lstat(path, status) == 0 && S_ISREG(status->st_mode) && status->st_uid == geteuid() &&
           is_since(status, since);
}

static void remove_if_new(const char *path, struct timespec since)
{
    struct stat status;
    if (is_new(path, since, &status))
        unlink(path);
}

/* The pid in "isolate-0xADDRESS-PID-v8.log", V8's name for its log beside a perf map. */
static bool log_pid(const char *name, uint32_t *pid)
{
    uint64_t isolate;
    int end = 0;
    return sscanf(name, "isolate-0x%" SCNx64 "-%" SCNu32 "-v8.log%n", &isolate, pid, &end) == 2 &&
           end && !name[end];
}

/* A process here has PID, too, so nothing proves whose the file is. */
static void tell_if_new(const char *path, uint32_t pid, const struct left_over_request *request)
{
    struct stat status;
    if (!request->quiet && is_new(path, request->since, &status))
        printable_line(stderr,
                       "perfjit: left: %s: process %" PRIu32
                       " of another pid namespace has written "
                       "it, but process %" PRIu32 " here is another one",
                       path, pid, pid);
}

/* The file of the process that has PID in its namespace. */
static void remove_inner_file(const char *path, uint32_t pid,
                              const struct left_over_request *request)
{
    if (live_process_goes_on(pid))
        tell_if_new(path, pid, request);
    else
        remove_if_new(path, request->since);
}

/* Remove the logs with the pid of a process of RECORDING in their name, or INNER's, which is the
 * pid in another namespace (0: none). */
static void remove_logs(const struct growing_recording *recording, uint32_t inner,
                        const char *directory, const struct left_over_request *request)
{
    DIR *entries = opendir(directory);
    const struct dirent *entry;
    uint32_t pid;
    char *path;
    while (entries && (entry = readdir(entries))) {
        if (!log_pid(entry->d_name, &pid) ||
            !(inner ? pid == inner : growing_recording_has_pid(recording, pid)) ||
            asprintf(&path, "%s/%s", directory, entry->d_name) < 0)
            continue;
        if (inner)
            remove_inner_file(path, inner, request);
        else
            remove_if_new(path, request->since);
        free(path);
    }
    if (entries)
        closedir(entries);
}

/* Remove the files of the process that has PID in its namespace, beside its dump, which was in
 * DIRECTORY. */
static void remove_inner(const struct growing_recording *recording, uint32_t pid,
                         const char *directory, const struct left_over_request *request)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%" PRIu32 ".map", pid);
    remove_inner_file(path, pid, request);
    remove_logs(recording, pid, directory, request);
}

static void remove_inner_dump(const struct growing_recording *recording,
                              const struct growing_dump *dump, uint32_t pid, const char *directory,
                              const struct left_over_request *request)
{
    struct stat status;
    if (!growing_recording_has_pid(recording, dump->pid) ||
        !is_new(dump->path, request->since, &status))
        return;
    if (major(status.st_dev) == dump->major && minor(status.st_dev) == dump->minor &&
        status.st_ino == dump->inode) {
        unlink(dump->path);
        remove_inner(recording, pid, directory, request);
    } else if (!request->quiet) {
        printable_line(stderr, "perfjit: left: %s: it can't be proven to be the run's", dump->path);
    }
}

static void remove_dump(const struct growing_recording *recording, const struct growing_dump *dump,
                        const struct left_over_request *request)
{
    uint32_t pid;
    char *directory = file_directory_of(dump->path);
    if (!directory)
        return;
    if (!jit_dump_name_pid(dump->path, &pid))
        pid = 0;
    if (pid && growing_recording_has_pid(recording, pid))
        remove_if_new(dump->path, request->since);
    else if (pid)
        remove_inner_dump(recording, dump, pid, directory, request);
    remove_logs(recording, 0, directory, request);
    free(directory);
}

/* ---- Places ---- */

static const char *const places[PLACES][2] = {
    {"/tmp/perf-", ".map"},
    {"/tmp/jit-", ".dump"},
    {"jit-", ".dump"},
    {"/tmp/perfinfo-", ".map"}}; /* which libraries .NET loaded */

/* The file of PID in place number I, below ROOT or not; to be freed. */
static char *file_of(size_t i, const char *root, uint32_t pid)
{
    char *path;
    const bool inner = root && places[i][0][0] == '/';
    return asprintf(&path, "%s%s%" PRIu32 "%s", inner ? root : "", places[i][0], pid,
                    places[i][1]) < 0
               ? NULL
               : path;
}

static bool has_header_of(const char *path, uint32_t pid)
{
    struct jit_dump dump;
    char cause[256];
    bool has = jit_dump_open(&dump, path, cause, sizeof cause) == 0 && dump.pid == pid;
    jit_dump_close(&dump);
    return has;
}

static bool is_dump_of(const char *path, uint32_t pid, const struct left_over_request *request)
{
    struct stat status;
    return path && lstat(path, &status) == 0 && S_ISREG(status.st_mode) &&
           is_since(&status, request->since) && has_header_of(path, pid);
}

char *left_over_unmapped_dump(const struct growing_recording *recording, uint32_t pid,
                              const struct left_over_request *request)
{
    char *path = NULL;
    for (size_t i = 0; i < recording->dump_count; i++)
        if (recording->dumps[i].pid == pid)
            return NULL;
    if (request->dumps && asprintf(&path, "%s/jit-%" PRIu32 ".dump", request->dumps, pid) < 0)
        return NULL;
    for (size_t i = 0; !is_dump_of(path, pid, request); i++) {
        free(path);
        if (i == PLACES)
            return NULL;
        path = file_of(i, request->root, pid);
    }
    return path;
}

static void remove_files(uint32_t pid, const char *root, struct timespec since)
{
    for (size_t i = 0; i < PLACES; i++) {
        char *path = file_of(i, root, pid);
        if (path)
            remove_if_new(path, since);
        free(path);
    }
}

/* ---- Runs in runs ---- */

static const char kept_prefix[] = "perfjit-kept-"; /* a pid in each line */

void left_over_keep(const struct growing_recording *recording, const char *outer)
{
    char *path;
    if (asprintf(&path, "%s/%s%d", outer, kept_prefix, (int)getpid()) < 0)
        return;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    for (uint32_t pid = 1; file && recording->pids && pid < GROWING_PIDS; pid++)
        if (growing_recording_has_pid(recording, pid))
            fprintf(file, "%" PRIu32 "\n", pid);
    if (file)
        fclose(file);
    else if (fd >= 0)
        close(fd);
    free(path);
}

static void forget_kept(struct growing_recording *recording, int directory_fd, const char *name)
{
    uint32_t pid;
    int fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    while (file && fscanf(file, "%" SCNu32, &pid) == 1)
        growing_recording_forget_pid(recording, pid);
    if (file)
        fclose(file);
    else if (fd >= 0)
        close(fd);
}

/* Also what a run in a run in this one keeps: the directory of that between is in DUMPS.  LEFT:
 * how many such runs may still be in each other. */
static void forget_all_kept(struct growing_recording *recording, const char *dumps, unsigned left)
{
    DIR *directory = dumps ? opendir(dumps) : NULL;
    const struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        char *inner;
        if (strncmp(entry->d_name, kept_prefix, sizeof kept_prefix - 1) == 0)
            forget_kept(recording, dirfd(directory), entry->d_name);
        else if (left && (inner = run_folder_inner(dumps, entry->d_name))) {
            forget_all_kept(recording, inner, left - 1);
            free(inner);
        }
    }
    if (directory)
        closedir(directory);
}

void left_over_remove(struct growing_recording *recording, const struct left_over_request *request)
{
    forget_all_kept(recording, request->dumps, RUNS_MOST);
    for (size_t i = 0; i < recording->dump_count; i++)
        remove_dump(recording, &recording->dumps[i], request);
    remove_logs(recording, 0, ".", request);
    for (uint32_t pid = 0; recording->pids && pid < GROWING_PIDS; pid++) {
        if (!growing_recording_has_pid(recording, pid))
            continue;
        remove_files(pid, NULL, request->since);
        if (request->root)
            remove_files(pid, request->root, request->since);
    }
}
