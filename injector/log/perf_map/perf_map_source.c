/* See perf_map_source.h. */
#include "injector/log/perf_map/perf_map_source.h"

#include "injector/arrays/address_map.h"
#include "injector/log/perf_map/mapped_file.h"
#include "injector/log/perf_map/perf_map_file.h"
#include "injector/recording/perf_data/perf_format.h"
#include "injector/text/code_name.h"
#include "injector/text/plural.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Which addresses are whose ---- */

/* Facts from a process's mappings and its dumps about its addresses. */
struct surroundings {
    bool given;                      /* its map, by the user */
    const struct recorded_map *maps; /* by time */
    size_t map_count;
    struct address_map memory; /* executable memory: the index of the map that first covered it; the
                                  last time, if a file was there in between */
    struct address_map files;  /* a file is mapped there now: the index of the map */
    struct mapped_files *known_files; /* of all processes */
    struct mapped_file **mapped;      /* by map, of those of known_files that are executable */
    struct address_map dumped;        /* some function of a dump was there at some time; likewise */
};

/* Set the free addresses in [START, END) to VALUE. */
static int fill(struct address_map *map, uint64_t start, uint64_t end, uint32_t value)
{
    while (start < end) {
        struct address_place place;
        const struct address_range *range = address_map_find(map, start, &place);
        bool inside = range && range->start < end;
        uint64_t stop = inside ? range->start : end, next = inside ? range->end : end;
        if (start < stop && address_map_set(map, start, stop, value))
            return -1;
        start = next;
    }
    return 0;
}

static int add_memory(struct surroundings *around, uint64_t start, uint64_t end, uint32_t map)
{
    struct address_place place;
    const struct address_range *range;
    while ((range = address_map_find(&around->files, start, &place)) && range->start < end) {
        uint64_t from = range->start > start ? range->start : start;
        uint64_t to = range->end < end ? range->end : end;
        if (address_map_set(&around->memory, from, to, map) ||
            address_map_clear(&around->files, from, to))
            return -1;
    }
    return fill(&around->memory, start, end, map);
}

static bool is_executable_memory(const struct recorded_map *map)
{
    return !map->map.data && perf_map_is_memory(&map->map);
}

/* Whether the process had mapped FILE, at the place where MAP maps it, elsewhere before; else it
 * has now.
 *
 * V8 (with pointer compression: Deno, Chromium) maps the part of its own binary that has the
 * builtins a second time, over memory that it has just reserved for code: that was never code's.
 * But a library may be loaded where code was before, and then the entries of the map there are that
 * code's. */
static bool is_mapped_again(struct mapped_file *file, const struct perf_map *map)
{
    const struct perf_map *before = file->seen;
    if (before && before->pid == map->pid)
        return map->pgoff - before->pgoff < before->len &&
               map->start - map->pgoff != before->start - before->pgoff;
    file->seen = map;
    return false;
}

static int add_file(struct surroundings *around, uint32_t index)
{
    const struct perf_map *map = &around->maps[index].map;
    uint64_t end = map->start + map->len;
    if (!map->data) {
        around->mapped[index] = mapped_files_get(around->known_files, map);
        if (!around->mapped[index] || (is_mapped_again(around->mapped[index], map) &&
                                       address_map_clear(&around->memory, map->start, end)))
            return -1;
    }
    return address_map_set(&around->files, map->start, end, index);
}

static int survey_maps(struct surroundings *around)
{
    around->mapped = calloc(around->map_count + 1, sizeof *around->mapped);
    if (!around->mapped)
        return -1;
    for (size_t i = 0; i < around->map_count; i++) {
        const struct perf_map *map = &around->maps[i].map;
        int result = 0;
        if (is_executable_memory(&around->maps[i]))
            result = add_memory(around, map->start, map->start + map->len, (uint32_t)i);
        else if (!perf_map_is_memory(map))
            result = add_file(around, (uint32_t)i);
        if (result)
            return -1;
    }
    return 0;
}

static int survey_dumps(struct surroundings *around, const struct code_log *log)
{
    for (size_t i = 0; i < log->function_count; i++) {
        const struct jit_function *function = &log->functions[i];
        if (address_map_set(&around->dumped, function->addr, function->addr + function->size, 0))
            return -1;
    }
    return 0;
}

static void free_surroundings(struct surroundings *around)
{
    address_map_free(&around->memory);
    address_map_free(&around->files);
    address_map_free(&around->dumped);
    free(around->mapped);
}

/* ---- From entries to functions ---- */

struct reader {
    const char *path; /* of the map */
    struct findings *findings;
    const struct surroundings *around;
    struct jit_process *process;
    struct perf_map_counts *counts;
    uint32_t dump;             /* index of the map among the process's dumps */
    struct address_range last; /* the executable memory that the last function lies in */
};

/* Add [START, END) as function NAME of the moment TIME_NS, but for where a dump has functions. */
static int add_unknown_to_dumps(struct reader *reader, const char *name, uint64_t start,
                                uint64_t end, uint64_t time_ns)
{
    struct address_place place;
    const struct address_range *range = address_map_find(&reader->around->dumped, start, &place);
    while (start < end) {
        bool inside = range && range->start < end;
        uint64_t stop = inside ? range->start : end;
        if (start < stop) {
            if (code_log_add_named(&reader->process->log, reader->dump, time_ns, start,
                                   stop - start, name))
                return -1;
            reader->counts->functions++;
        }
        if (!inside)
            break;
        start = range->end;
        range = address_map_next(&reader->around->dumped, &place);
    }
    return 0;
}

/* The file of map INDEX is mapped at [START, END).  Add the parts in which the file has no symbols:
 * perf names the others. */
static int add_unknown_to_file(struct reader *reader, const char *name, uint64_t start,
                               uint64_t end, uint32_t index)
{
    const struct surroundings *around = reader->around;
    const struct recorded_map *map = &around->maps[index];
    uint64_t to_offset = map->map.pgoff - map->map.start;
    while (start < end) {
        struct address_span symbols;
        if (mapped_file_symbols(around->known_files, around->mapped[index], start + to_offset,
                                &symbols))
            return -1;
        uint64_t free_bytes = symbols.start > start + to_offset
                                  ? symbols.start - (start + to_offset)
                                  : 0; /* up to the next symbols */
        uint64_t stop = free_bytes < end - start ? start + free_bytes : end;
        if (add_unknown_to_dumps(reader, name, start, stop, map->time_ns + 1))
            return -1;
        start = symbols.end - to_offset > stop ? symbols.end - to_offset : end;
    }
    return 0;
}

/* Add the parts of [START, END) that lie in executable mappings of files without symbols there, and
 * were never memory.  Sets *FILE if anything lies in a file. */
static int add_in_files(struct reader *reader, const char *name, uint64_t start, uint64_t end,
                        bool *file)
{
    const struct surroundings *around = reader->around;
    struct address_place place;
    const struct address_range *range = address_map_find(&around->files, start, &place);
    for (; range && range->start < end; range = address_map_next(&around->files, &place)) {
        uint64_t from = range->start > start ? range->start : start;
        uint64_t to = range->end < end ? range->end : end;
        *file = true;
        if (around->mapped[range->value] && around->maps[range->value].map.filename[0] == '/' &&
            add_unknown_to_file(reader, name, from, to, range->value))
            return -1;
    }
    return 0;
}

/* RANGE holds all of the next function.  If it holds the last one too, no symbol names the bytes
 * between them, and one map record may cover them: OpenJDK leaves 100 bytes and more in front of
 * each function. */
static void note_memory(struct reader *reader, const struct address_range *range)
{
    struct code_log *log = &reader->process->log;
    if (range->start == reader->last.start && range->end == reader->last.end &&
        reader->counts->functions)
        log->functions[log->function_count - 1].same_memory = true;
    reader->last = *range;
}

/* Add an entry that is nowhere in memory. */
static int add_entry_of_file(struct reader *reader, const char *name, uint64_t start, uint64_t end)
{
    size_t functions = reader->counts->functions;
    bool file = false;
    if (end >= start && add_in_files(reader, name, start, end, &file))
        return -1;
    if (reader->counts->functions > functions)
        reader->last = (struct address_range){0, 0, 0};
    else
        file ? reader->counts->in_files++ : reader->counts->outside++;
    return 0;
}

/* The name of ENTRY as it is shown.  NULL without memory. */
static const char *name_of(struct reader *reader, const struct perfmap_entry *entry)
{
    size_t bytes = strlen(entry->name);
    if (!code_name_is_printable(entry->name, bytes))
        report_quirk(reader->findings, QUIRK_NAME_UNPRINTABLE, "%s: the function at 0x%" PRIx64,
                     reader->path, entry->addr);
    return code_log_shown_name(&reader->process->log, entry->name, &bytes, true);
}

/* An entry is there when all of it that ever was executable memory is: an arena may have grown into
 * it.  One nanosecond later, because of a function and a mapping of the same time the function
 * comes first. */
static int add_entry(struct reader *reader, const struct perfmap_entry *entry)
{
    const struct surroundings *around = reader->around;
    uint64_t start = entry->addr, end = start + (entry->size_bytes ? entry->size_bytes : 1);
    uint64_t reach, time_ns = 0;
    struct address_place place;
    const struct address_range *range = address_map_find(&around->memory, start, &place);
    const char *name = name_of(reader, entry);
    if (!name)
        return -1;
    if (end < start || !range || range->start >= end)
        return add_entry_of_file(reader, name, start, end);
    note_memory(reader, range);
    reach = range->start > start ? range->start : start;
    uint64_t first = reach;
    for (; range && range->start <= reach && reach < end;
         range = address_map_next(&around->memory, &place)) {
        uint64_t mapped_ns = around->maps[range->value].time_ns;
        time_ns = mapped_ns > time_ns ? mapped_ns : time_ns;
        reach = range->end < end ? range->end : end;
    }
    reader->counts->clipped += first > start || reach < end;
    return add_unknown_to_dumps(reader, name, first, reach, time_ns + 1);
}

static int add_entries(struct reader *reader, const struct perfmap_table *table)
{
    size_t count;
    const struct perfmap_entry *entries = perfmap_entries(table, &count);
    reader->counts->entries += count;
    for (size_t i = 0; i < count; i++)
        if (add_entry(reader, &entries[i]))
            return -1;
    return 0;
}

/* ---- One process ---- */

/* When the program that the process ran last while it had executable memory began, on perf's clock:
 * its exec, if that was recorded; 0: unknown. */
static uint64_t began_ns(const struct records *records, const struct recorded_map *maps,
                         size_t map_count, uint32_t pid)
{
    uint64_t last_ns = 0, began = 0;
    for (size_t i = 0; i < map_count; i++)
        if (is_executable_memory(&maps[i]))
            last_ns = maps[i].time_ns;
    size_t task_count;
    const struct recorded_task *tasks = records_tasks_of(records, pid, &task_count);
    for (size_t i = 0; i < task_count && tasks[i].time_ns <= last_ns; i++)
        if (tasks[i].kind == TASK_EXEC)
            began = tasks[i].time_ns;
    return began;
}

/* The last life of PID in which it had executable memory: the map is that one's.  NO_LIFE if the
 * pid is unknown. */
static uint32_t life_of(const struct process_lives *lives, const struct records *records,
                        uint32_t pid)
{
    size_t count, lives_count;
    const struct recorded_map *maps = records_maps_of(records, pid, &count);
    uint32_t life = process_lives_of(lives, pid, &lives_count);
    for (size_t i = 0; i < count; i++)
        if (is_executable_memory(&maps[i]))
            life = process_life_at(lives, pid, life_moment_of(&maps[i]));
    return life;
}

/* A map stands among the dumps of its process: an image takes machine and byte order from there,
 * and messages the path. */
static struct jit_dump stand_in(const struct jit_process *process,
                                const struct recording_host *host, const char *path)
{
    if (process->dump_count)
        return (struct jit_dump){.path = path,
                                 .big_endian = process->dumps[0].big_endian,
                                 .elf_mach = process->dumps[0].elf_mach,
                                 .address_bytes = process->dumps[0].address_bytes};
    return (struct jit_dump){
        .path = path, .elf_mach = host->elf_mach, .address_bytes = host->address_bytes};
}

static int add_functions(struct jit_process *process, const struct surroundings *around,
                         const struct perfmap_table *table, const char *path,
                         struct findings *findings)
{
    struct reader reader = {.path = path,
                            .findings = findings,
                            .around = around,
                            .process = process,
                            .counts = &process->perf_map_counts,
                            .dump = (uint32_t)process->dump_count};
    return add_entries(&reader, table);
}

/* perf 6.1 unwinds a user stack (--call-graph dwarf) no further than to a file without unwind
 * tables, but goes on by frame pointers where a table merely has no entry.  V8 logs empty tables to
 * say so.  A map can't say anything, and code without frame pointers loses nothing. */
static void allow_frame_pointers(struct jit_process *process, const struct perf_file *file)
{
    if (perf_file_has_stacks(file))
        process->log.has_unwinding = true;
}

/* Give the map TABLE, from PATH, to its process, which has the maps of AROUND; both belong to the
 * process then, or are freed. */
static int add_to_process(const struct perf_map_search *search, struct jit_process *process,
                          const struct surroundings *around, struct perfmap_table *table,
                          char *path, struct findings *findings)
{
    const struct perf_map_counts *counts = &process->perf_map_counts;
    struct jit_dump dump = stand_in(process, &search->host, path);
    int result = add_functions(process, around, table, path, findings);
    if (!result && counts->entries && counts->outside == counts->entries)
        /* By chance of the pid: a process with a dump need not have a map. */
        report_finding(
            findings,
            process->dump_count && !around->given ? FINDING_MAP_STALE : FINDING_MAP_ELSEWHERE,
            "%s: none of its %zu function%s lies in executable memory of process %" PRIu32, path,
            counts->entries, plural(counts->entries), process->pid);
    if (!result && counts->functions && !jit_process_add_dump(process, &dump, path)) {
        process->perf_map = table;
        allow_frame_pointers(process, search->records->file);
        return 0;
    }
    result = result || counts->functions ? report_failure(findings, "out of memory") : 0;
    perfmap_free(table);
    free(path);
    return result;
}

/* The maps of process PID, from the beginning of LIFE on, or from the exec, at *SINCE_NS, after
 * which it last had executable memory. */
static struct surroundings surroundings_of(const struct process_lives *lives,
                                           const struct records *records, uint32_t pid,
                                           uint32_t life, uint64_t *since_ns)
{
    struct surroundings around = {0};
    around.maps = records_maps_of(records, pid, &around.map_count);
    *since_ns = began_ns(records, around.maps, around.map_count, pid);
    uint64_t begin_ns = life == NO_LIFE ? 0 : lives->items[life].begin.time_ns;
    if (begin_ns < *since_ns)
        begin_ns = *since_ns;
    for (; around.map_count && around.maps->time_ns < begin_ns; around.map_count--)
        around.maps++;
    return around;
}

static int take(struct jit_processes *processes, const struct perf_map_search *search,
                uint32_t life, struct surroundings *around, struct perfmap_table *table, char *path,
                struct findings *findings)
{
    struct jit_process *process = life == NO_LIFE ? NULL : jit_process_of_life(processes, life);
    int result = -1;
    around->known_files = search->mapped_files;
    if (process && !survey_maps(around) && !survey_dumps(around, &process->log)) {
        result = add_to_process(search, process, around, table, path, findings);
    } else {
        perfmap_free(table);
        free(path);
        report_failure(findings, "out of memory");
    }
    free_surroundings(around);
    return result;
}

/* ---- Which processes ---- */

static bool was_given(const uint32_t *pids, size_t count, uint32_t pid)
{
    for (size_t i = 0; i < count; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

/* Whose GIVEN is. */
static int pid_of(const struct given_file *given, uint32_t *pid, struct findings *findings)
{
    *pid = given->pid;
    if (!*given->path)
        return report_failure(findings, "--perf-map %s names no file: --perf-map PID:FILE",
                              given->text);
    if (!given->pid && !perf_map_name_pid(given->path, pid))
        return report_failure(
            findings, "%s: not named perf-<pid>.map; say whose it is with --perf-map PID:FILE",
            given->path);
    return 0;
}

/* Take the map PATH, named by hand, of process PID. */
static int take_given(struct jit_processes *processes, const struct perf_map_search *search,
                      uint32_t pid, const char *path, struct findings *findings)
{
    uint64_t since_ns;
    struct perfmap_table *table;
    uint32_t life = life_of(&processes->lives, search->records, pid);
    struct surroundings around =
        surroundings_of(&processes->lives, search->records, pid, life, &since_ns);
    if (around.map_count == 0)
        return report_failure(findings, "%s: process %" PRIu32 " of %s is not in this recording",
                              search->records->file->path, pid, path);
    if (perf_map_file_read(&table, path, findings))
        return -1;
    char *copy = strdup(path);
    if (!copy) {
        perfmap_free(table);
        return report_failure(findings, "out of memory");
    }
    around.given = true;
    return take(processes, search, life, &around, table, copy, findings);
}

/* Take all that were named by hand; PIDS receives their processes. */
static int take_all_given(struct jit_processes *processes, const struct perf_map_search *search,
                          const struct perf_map_options *options, uint32_t *pids,
                          struct findings *findings)
{
    for (size_t i = 0; i < options->given_count; i++) {
        const char *path = options->given[i].path;
        if (pid_of(&options->given[i], &pids[i], findings))
            return -1;
        if (was_given(pids, i, pids[i]))
            return report_failure(findings, "%s: process %" PRIu32 " has another map given", path,
                                  pids[i]);
        if (take_given(processes, search, pids[i], path, findings))
            return -1;
    }
    return 0;
}

/* Look for the map of process PID, which has executable memory, and take it. */
static int take_found(struct jit_processes *processes, const struct perf_map_search *search,
                      uint32_t pid, struct findings *findings)
{
    struct perfmap_table *table;
    char *path;
    uint64_t since_ns;
    uint32_t life = life_of(&processes->lives, search->records, pid);
    struct surroundings around =
        surroundings_of(&processes->lives, search->records, pid, life, &since_ns);
    if (perf_map_file_find(&table, &path, search, pid, since_ns, findings))
        return -1;
    return table ? take(processes, search, life, &around, table, path, findings) : 0;
}

static int take_all_found(struct jit_processes *processes, const struct perf_map_search *search,
                          const uint32_t *given, size_t given_count, struct findings *findings)
{
    const struct records *records = search->records;
    for (size_t i = 0, end; i < records->map_count; i = end) {
        uint32_t pid = records->maps[i].map.pid;
        bool has_memory = false;
        for (end = i; end < records->map_count && records->maps[end].map.pid == pid; end++)
            has_memory = has_memory || is_executable_memory(&records->maps[end]);
        if (has_memory && !was_given(given, given_count, pid) &&
            take_found(processes, search, pid, findings))
            return -1;
    }
    return 0;
}

int perf_maps_read(struct jit_processes *processes, const struct records *records,
                   const struct perf_map_options *options, struct findings *findings)
{
    struct perf_map_search search;
    uint32_t *given = calloc(options->given_count + 1, sizeof *given);
    int result = given ? 0 : report_failure(findings, "out of memory");
    struct mapped_files mapped_files = {.root = options->root};
    perf_map_search_begin(&search, records, options->root);
    search.mapped_files = &mapped_files;
    mapped_files.is_elsewheres = !recording_host_is_here(&search.host);
    if (!result)
        result = take_all_given(processes, &search, options, given, findings);
    if (!result && !options->only_given)
        result = take_all_found(processes, &search, given, options->given_count, findings);
    free(given);
    mapped_files_free(&mapped_files);
    return result;
}
