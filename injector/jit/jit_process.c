/* See jit_process.h. */
#include "injector/jit/jit_process.h"

#include "injector/array.h"
#include "injector/jit/perf_map_source.h"
#include "perfmap/perfmap.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

bool jit_dump_name_pid(const char *path, uint32_t *pid)
{
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    if (strncmp(name, "jit-", 4) != 0)
        return false;
    uint64_t number = 0;
    const char *digit = name + 4;
    for (; *digit >= '0' && *digit <= '9' && number <= UINT32_MAX; digit++)
        number = number * 10 + (uint64_t)(*digit - '0');
    *pid = (uint32_t)number;
    return digit > name + 4 && number <= UINT32_MAX && strcmp(digit, ".dump") == 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

struct jit_process *jit_process_of(struct jit_processes *processes, uint32_t pid)
{
    for (size_t i = 0; i < processes->count; i++)
        if (processes->items[i].pid == pid)
            return &processes->items[i];
    struct jit_process *items =
        array_room(processes->items, processes->count, &processes->capacity, sizeof *items);
    if (!items)
        return NULL;
    processes->items = items;
    struct jit_process *process = &items[processes->count++];
    *process = (struct jit_process){.pid = pid};
    return process;
}

/* Whether PROCESS already has the dump PATH: mapped twice, or given by hand from where it was moved to. */
static bool has_dump(const struct jit_process *process, const char *path)
{
    for (size_t i = 0; i < process->dump_count; i++)
        if (strcmp(process->dump_paths[i], path) == 0 ||
            (i < process->given_count &&
             strcmp(base_name(process->dump_paths[i]), base_name(path)) == 0))
            return true;
    return false;
}

int jit_process_add_dump(struct jit_process *process, const struct jit_dump *dump, char *path)
{
    struct jit_dump *dumps =
        array_room(process->dumps, process->dump_count, &process->dump_capacity, sizeof *dumps);
    if (!dumps)
        return -1;
    process->dumps = dumps;
    char **paths = array_room(process->dump_paths, process->dump_count, &process->path_capacity,
                              sizeof *paths);
    if (!paths)
        return -1;
    process->dump_paths = paths;
    dumps[process->dump_count] = *dump;
    paths[process->dump_count++] = path;
    return 0;
}

static int read_dump(struct jit_process *process, struct jit_dump *dump, char *path,
                     const struct profile *profile, struct findings *findings)
{
    struct jit_clock clock;
    const char *why = jit_clock_choose(&clock, profile, dump);
    if (why) {
        finding(findings, FINDING_DUMP_UNUSABLE, "%s: %s", path, why);
        return 1;
    }
    if (code_log_add(&process->log, dump, (uint32_t)process->dump_count, &clock, findings))
        return -1;
    return jit_process_add_dump(process, dump, path) ? failure(findings, "out of memory") : 0;
}

/* Open and read the dump PATH for process PID, unless that has been done.  What is wrong with it is a finding, not a failure. */
static int take_dump(struct jit_processes *processes, const struct profile *profile, uint32_t pid,
                     const char *path, struct findings *findings)
{
    char cause[256];
    struct jit_process *process = jit_process_of(processes, pid);
    char *copy = strdup(path);
    if (!process || !copy || has_dump(process, path)) {
        free(copy);
        return process && copy ? 0 : failure(findings, "out of memory");
    }
    struct jit_dump dump;
    int result = jit_dump_open(&dump, copy, cause, sizeof cause);
    if (result)
        finding(findings, access(path, F_OK) ? FINDING_DUMP_MISSING : FINDING_DUMP_UNUSABLE,
                "%s: %s", path, cause);
    else
        result = read_dump(process, &dump, copy, profile, findings);
    if (result) {
        jit_dump_close(&dump);
        free(copy);
    }
    return findings->failure[0] ? -1 : 0;
}

static int add_marker(struct jit_processes *processes, uint64_t offset, struct findings *findings)
{
    uint64_t *offsets = array_room(processes->marker_offsets, processes->marker_count,
                                   &processes->marker_capacity, sizeof *offsets);
    if (!offsets)
        return failure(findings, "out of memory");
    processes->marker_offsets = offsets;
    offsets[processes->marker_count++] = offset;
    return 0;
}

/* A mapping of a file that is named like a dump.  perf record -d also sees the mappings of whoever merely
 * reads a dump: those are not executable. */
static int take_marker(struct jit_processes *processes, const struct profile *profile,
                       const struct profile_map *map, uint32_t number, struct findings *findings)
{
    if (number != map->map.pid) {
        if (!map->map.data)
            finding(findings, FINDING_DUMP_NOT_OURS, "%s: was mapped by process %" PRIu32,
                    map->map.filename, map->map.pid);
        return 0;
    }
    const char *path = map->map.filename;
    struct jit_process *process = jit_process_of(processes, number);
    if (!process)
        return failure(findings, "out of memory");
    if (take_dump(processes, profile, number, path, findings))
        return -1;
    if (!has_dump(jit_process_of(processes, number), path))
        return 0;
    return add_marker(processes, map->record.offset, findings);
}

static int take_markers(struct jit_processes *processes, const struct profile *profile,
                        struct findings *findings)
{
    for (size_t i = 0; i < profile->map_count; i++) {
        uint32_t number;
        if (jit_dump_name_pid(profile->maps[i].map.filename, &number) &&
            take_marker(processes, profile, &profile->maps[i], number, findings))
            return -1;
    }
    return 0;
}

static int take_extra(struct jit_processes *processes, const struct profile *profile,
                      const char *path, struct findings *findings)
{
    uint32_t pid;
    char cause[256];
    struct jit_dump dump;
    if (jit_dump_name_pid(path, &pid))
        return take_dump(processes, profile, pid, path, findings);
    if (jit_dump_open(&dump, path, cause, sizeof cause)) {
        jit_dump_close(&dump);
        return failure(findings, "%s: %s", path, cause);
    }
    pid = dump.pid;
    jit_dump_close(&dump);
    return take_dump(processes, profile, pid, path, findings);
}

static int finish(struct jit_process *process, const struct profile *profile,
                  struct findings *findings)
{
    process->maps = profile_maps_of(profile, process->pid, &process->map_count);
    if (process->map_count == 0)
        return failure(findings, "%s: process %" PRIu32 " of %s is not in this recording",
                       profile->file->path, process->pid, process->dump_paths[0]);
    process->witness = process->maps[process->map_count - 1].record;
    return code_log_sort(&process->log, findings);
}

/* Dumps given by hand, which are read first, stand for markers of the same file name in any directory. */
static void mark_given(struct jit_processes *processes)
{
    for (size_t i = 0; i < processes->count; i++)
        processes->items[i].given_count = processes->items[i].dump_count;
}

static size_t dump_count(const struct jit_processes *processes)
{
    size_t count = 0;
    for (size_t i = 0; i < processes->count; i++)
        count += processes->items[i].dump_count;
    return count;
}

/* No dump could be read: why, and what follows the text of the first case. */
struct reason {
    enum finding_kind kind;
    const char *remedy;
};

static const struct reason reasons[] = {
    {FINDING_DUMP_UNUSABLE, ""},
    {FINDING_DUMP_MISSING,
     "; the profile names this dump, but it is not there: if it was moved, name "
     "it with --jitdump FILE"},
    {FINDING_DUMP_NOT_OURS, "; to use it all the same, name it with --jitdump FILE"},
    {FINDING_MAP_UNUSABLE, ""},
    {FINDING_MAP_NOT_OURS, "; to use it all the same, name it with --perf-map FILE"},
    {FINDING_MAP_ELSEWHERE, "; it is the map of another process, or of another run"},
    {FINDING_MAP_LINES, "; there is no other map, and no dump"},
};

/* Neither dump nor map could be used: say why in one sentence. */
static int no_dump(const struct profile *profile, struct findings *findings)
{
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (findings->count[reasons[i].kind])
            return failure(findings, "%s%s", findings->first[reasons[i].kind], reasons[i].remedy);
    return failure(findings,
                   "%s: no jitdump found: no process in it mapped a file named jit-<pid>.dump, and "
                   "none that has "
                   "executable memory left a perf map that names code there (/tmp/perf-<pid>.map); "
                   "was the runtime told "
                   "to write one (PERFJIT=dump, node --perf-prof, ...)?",
                   profile->file->path);
}

int jit_processes_read(struct jit_processes *processes, const struct profile *profile,
                       char *const *extra, size_t extra_count,
                       const struct perf_map_options *perf_maps, struct findings *findings)
{
    *processes = (struct jit_processes){0};
    for (size_t i = 0; i < extra_count; i++)
        if (take_extra(processes, profile, extra[i], findings))
            return -1;
    mark_given(processes);
    if (take_markers(processes, profile, findings) ||
        perf_maps_read(processes, profile, perf_maps, findings))
        return -1;
    if (dump_count(processes) == 0)
        return no_dump(profile, findings);
    for (size_t i = 0; i < processes->count; i++)
        if (processes->items[i].dump_count && finish(&processes->items[i], profile, findings))
            return -1;
    return 0;
}

void jit_processes_free(struct jit_processes *processes)
{
    for (size_t i = 0; i < processes->count; i++) {
        struct jit_process *process = &processes->items[i];
        for (size_t d = 0; d < process->dump_count; d++) {
            jit_dump_close(&process->dumps[d]);
            free(process->dump_paths[d]);
        }
        free(process->dumps);
        free(process->dump_paths);
        code_log_free(&process->log);
        perfmap_free(process->perf_map);
    }
    free(processes->items);
    free(processes->marker_offsets);
}
