/* See perf_map_file.h. */
#include "injector/log/perf_map/perf_map_file.h"

#include "injector/files/regular_file.h"
#include "injector/recording/host/trusted_owner.h"
#include "injector/text/file_name.h"

#include "injector/recording/host/live_process.h"
#include "injector/text/plural.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)

/* Files get their times from a clock that ticks only every few milliseconds, and wall clocks are
 * set. */
#define CLOCK_SLACK_NS NS_PER_S

/* More than two million functions.  The whole text is held in memory, twice for a moment. */
#define MAX_MAP_BYTES ((off_t)256 << 20)

enum { CAUSE_BYTES = 256 };

static uint64_t stat_ns(struct timespec time)
{
    return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

bool perf_map_name_pid(const char *path, uint32_t *pid)
{
    const char *name = file_name_of(path);
    const char *end = strncmp(name, "perf-", 5) == 0 ? file_name_number(name + 4, pid) : NULL;
    return end && strcmp(end, ".map") == 0;
}

/* ---- What is known of the recording ---- */

/* The time of the last thing in PROFILE, on perf's clock. */
static uint64_t last_ns(const struct records *records)
{
    uint64_t last = records_last_sample_ns(records);
    for (size_t i = 0; i < records->map_count; i++)
        if (records->maps[i].time_ns > last)
            last = records->maps[i].time_ns;
    return last;
}

void perf_map_search_begin(struct perf_map_search *search, const struct records *records,
                           const char *root)
{
    struct stat status;
    *search = (struct perf_map_search){.records = records, .root = root, .owner = -1};
    recording_host_read(&search->host, records->file);
    if (stat(records->file->path, &status) == 0 && S_ISREG(status.st_mode)) {
        search->owner = (int64_t)status.st_uid;
        search->recorded_wall_ns = stat_ns(status.st_mtim);
    }
    if (search->host.has_wall_clock)
        search->recorded_wall_ns =
            recording_host_wall_ns(&search->host, last_ns(records)) + CLOCK_SLACK_NS;
}

/* ---- One file ---- */

/* Open the map PATH, with FLAGS as regular_file_open.  Returns a descriptor, or -1 with CAUSE set,
 * and errno. */
static int open_map(const char *path, int flags, struct stat *status, char *cause)
{
    int fd = regular_file_open(path, flags, status), error = fd < 0 ? errno : 0;
    if (fd >= 0 && status->st_size <= MAX_MAP_BYTES)
        return fd;
    snprintf(cause, CAUSE_BYTES, "%s",
             fd >= 0          ? "larger than 256 MiB"
             : error == ELOOP ? "is a symbolic link"
                              : regular_file_error(error));
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

/* A map that was read. */
struct map_contents {
    struct perfmap_table *table;
    size_t continued; /* of the bad lines, those that go on with the name of the line before */
};

/* Whether LINE, which is no entry, is not a piece of one either: it begins with no address. */
static bool goes_on_with_name(const char *line, const char *end)
{
    enum { SHORTEST_ADDRESS = 4 };
    const char *at = line + (end - line > 2 && line[0] == '0' && (line[1] | 0x20) == 'x' ? 2 : 0);
    const char *digits = at;
    while (at < end && isxdigit((unsigned char)*at))
        at++;
    bool is_address = at - digits >= SHORTEST_ADDRESS && (at == end || isspace((unsigned char)*at));
    return line < end && *line != '\r' && !is_address;
}

/* How many lines of TEXT go on with a name: those behind the first one that begin with no
 * address. */
static size_t count_continued(const char *text, size_t bytes)
{
    const char *text_end = text + bytes, *line = memchr(text, '\n', bytes);
    size_t count = 0;
    while (line && ++line < text_end) {
        const char *end = memchr(line, '\n', (size_t)(text_end - line));
        count += goes_on_with_name(line, end ? end : text_end);
        line = end;
    }
    return count;
}

/* Returns 0, or -1 with CAUSE set. */
static int parse(struct map_contents *contents, int fd, const struct stat *status, char *cause)
{
    size_t bytes = (size_t)status->st_size;
    char *text = malloc(bytes + 1);
    int error = text ? 0 : -ENOMEM;
    if (!error && regular_file_read(fd, text, &bytes))
        error = -errno;
    if (!error)
        error = perfmap_parse(&contents->table, text, bytes);
    if (!error && perfmap_bad_lines(contents->table))
        contents->continued = count_continued(text, bytes);
    free(text);
    if (error)
        snprintf(cause, CAUSE_BYTES, "can't read it: %s", strerror(-error));
    return error ? -1 : 0;
}

static void report_lines(const struct map_contents *contents, const char *path,
                         struct findings *findings)
{
    size_t good, bad = perfmap_bad_lines(contents->table);
    size_t continued = contents->continued < bad ? contents->continued : bad;
    perfmap_entries(contents->table, &good);
    if (!good) /* that is no map */
        continued = 0;
    if (continued)
        report_finding(findings, FINDING_MAP_NAMES, "%s: %zu line%s go%s on with a name", path,
                       continued, plural(continued), continued == 1 ? "es" : "");
    bad -= continued;
    if (bad)
        report_finding(findings, FINDING_MAP_LINES,
                       "%s: %zu line%s can't be read; %zu function%s %s left", path, bad,
                       plural(bad), good, plural(good), is_or_are(good));
}

int perf_map_file_read(struct perfmap_table **table, const char *path, struct findings *findings)
{
    char cause[CAUSE_BYTES];
    struct stat status;
    struct map_contents contents = {0};
    *table = NULL;
    int fd = open_map(path, 0, &status, cause);
    int result = fd < 0 ? -1 : parse(&contents, fd, &status, cause);
    if (fd >= 0)
        close(fd);
    if (result)
        return report_failure(findings, "%s: %s", path, cause);
    report_lines(&contents, path, findings);
    *table = contents.table;
    return 0;
}

/* ---- Whose it is ---- */

static bool is_this_machines(const struct perf_map_search *search)
{
    return search->root || recording_host_is_here(&search->host);
}

bool perf_map_file_is_older(const struct stat *status, uint64_t began_wall_ns)
{
    return stat_ns(status->st_mtim) + CLOCK_SLACK_NS < began_wall_ns;
}

/* Whether the map with STATUS was left by an earlier process with the pid of the one that began at
 * BEGAN_NS; then CAUSE is set.  LIVE: the process, or NULL. */
static bool is_stale(const struct perf_map_search *search, const struct stat *status,
                     const struct live_process *live, uint64_t began_ns, char *cause)
{
    uint64_t began_wall_ns = live ? live->started_wall_ns : 0;
    if (began_ns && search->host.has_wall_clock)
        began_wall_ns = recording_host_wall_ns(&search->host, began_ns);
    if (!is_this_machines(search) || !perf_map_file_is_older(status, began_wall_ns))
        return false;
    snprintf(cause, CAUSE_BYTES,
             "is older, by %" PRIu64 " s, than the process: it was left by an earlier one with "
             "the same pid; to use it all the same, name it with --perf-map FILE",
             (began_wall_ns - stat_ns(status->st_mtim)) / NS_PER_S);
    return true;
}

/* Why the map with STATUS need not be LIVE's, or that of a process that is no more; false if
 * nothing speaks against it. */
static bool is_foreign(const struct perf_map_search *search, const struct stat *status,
                       const struct live_process *live, char *cause)
{
    if (!owner_is_trusted(status->st_uid, search->owner) && !(live && live->uid == status->st_uid))
        snprintf(cause, CAUSE_BYTES, "belongs to user %" PRIu32 ", who may not be the process's",
                 status->st_uid);
    else if (!is_this_machines(search))
        snprintf(cause, CAUSE_BYTES, "the recording was made on another machine, '%s'",
                 search->host.name);
    else
        return false;
    return true;
}

/* ---- Where it is ---- */

/* Take the map PATH for the process; *TABLE stays NULL if there is none.  Returns 1 if there is a
 * file, usable or not. */
static int take(struct perfmap_table **table, const char *path,
                const struct perf_map_search *search, const struct live_process *live,
                uint64_t began_ns, struct findings *findings)
{
    char cause[CAUSE_BYTES];
    struct stat status;
    struct map_contents contents = {0};
    int fd = open_map(path, O_NOFOLLOW, &status, cause);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (fd < 0) {
        report_finding(findings, FINDING_MAP_UNUSABLE, "%s: %s", path, cause);
        return 1;
    }
    if (is_stale(search, &status, live, began_ns, cause))
        report_finding(findings, FINDING_MAP_STALE, "%s: %s", path, cause);
    else if (is_foreign(search, &status, live, cause))
        report_finding(findings, FINDING_MAP_NOT_OURS, "%s: %s", path, cause);
    else if (parse(&contents, fd, &status, cause))
        report_finding(findings, FINDING_MAP_UNUSABLE, "%s: %s", path, cause);
    else
        report_lines(&contents, path, findings);
    *table = contents.table;
    close(fd);
    return 1;
}

enum place { PLACE_ROOT, PLACE_LIVE, PLACE_TMP, PLACES };

/* The path of the map in PLACE, or NULL without memory; *APPLIES is false if there is no such
 * place. */
static char *path_in(enum place place, const struct perf_map_search *search, uint32_t pid,
                     const struct live_process *live, bool *applies)
{
    char *path = NULL, own_root[LIVE_ROOT_BYTES];
    int length = -1;
    *applies = true;
    if (place == PLACE_TMP)
        length = asprintf(&path, "/tmp/perf-%" PRIu32 ".map", pid);
    else if (place == PLACE_ROOT && search->root)
        length = asprintf(&path, "%s/tmp/perf-%" PRIu32 ".map", search->root,
                          live ? live->namespace_pid : pid);
    else if (place == PLACE_LIVE && live && (live->other_root || live->other_tmp))
        length = asprintf(&path, "%s/tmp/perf-%" PRIu32 ".map", live_process_root(own_root, pid),
                          live->namespace_pid);
    else
        *applies = false;
    return length < 0 ? NULL : path;
}

/* The process PID in PROCESS, if it still lives here; else NULL. */
static const struct live_process *find_live(const struct perf_map_search *search, uint32_t pid,
                                            struct live_process *process)
{
    return recording_host_is_here(&search->host) &&
                   live_process_read(process, pid, search->recorded_wall_ns)
               ? process
               : NULL;
}

int perf_map_file_find(struct perfmap_table **table, char **path,
                       const struct perf_map_search *search, uint32_t pid, uint64_t began_ns,
                       struct findings *findings)
{
    struct live_process process;
    const struct live_process *live = find_live(search, pid, &process);
    *table = NULL;
    *path = NULL;
    for (int place = 0; place < PLACES; place++) {
        bool applies;
        char *candidate = path_in((enum place)place, search, pid, live, &applies);
        if (!applies)
            continue;
        if (!candidate)
            return report_failure(findings, "out of memory");
        bool there = take(table, candidate, search, live, began_ns, findings);
        if (*table)
            *path = candidate;
        else
            free(candidate);
        if (there)
            return 0;
    }
    return 0;
}

/* Another machine's map is not in this one's /tmp. */
bool perf_map_file_is_there(const struct perf_map_search *search, uint32_t pid, uint64_t began_ns)
{
    char cause[CAUSE_BYTES];
    struct live_process process;
    const struct live_process *live = find_live(search, pid, &process);
    int places = recording_host_is_here(&search->host) ? PLACES : PLACE_TMP;
    bool found = false;
    for (int place = 0; place < places && !found; place++) {
        bool applies;
        struct stat status;
        char *path = path_in((enum place)place, search, pid, live, &applies);
        found =
            path && lstat(path, &status) == 0 && !is_stale(search, &status, live, began_ns, cause);
        free(path);
    }
    return found;
}
