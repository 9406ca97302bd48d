/* See perf_map_source.h. */
#include "injector/log/perf_map/perf_map_source.h"

#include "injector/arrays/address_map.h"
#include "injector/arrays/array.h"
#include "injector/log/jitdump/dump_name.h"
#include "injector/log/perf_map/mapped_file.h"
#include "injector/log/perf_map/perf_map_file.h"
#include "injector/recording/perf_data/perf_format.h"
#include "injector/text/code_name.h"
#include "injector/text/plural.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Which addresses are whose ---- */

/* Facts from a process's mappings, and those that it inherited, and its dumps about its
 * addresses. */
struct surroundings {
    bool given;                       /* its map, by the user */
    uint64_t begin_ns;                /* of its life */
    const struct recorded_map **maps; /* the inherited ones, then its own, by time */
    size_t map_count, map_capacity;
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

/* When the process got map INDEX: with its fork, if it inherited it. */
static uint64_t mapped_at(const struct surroundings *around, size_t index)
{
    uint64_t time_ns = around->maps[index]->time_ns;
    return time_ns > around->begin_ns ? time_ns : around->begin_ns;
}

static bool is_executable_memory(const struct recorded_map *map)
{
    return !map->map.data && perf_map_is_memory(&map->map);
}

/* The markers of dumps are none. */
static bool may_hold_code(const struct recorded_map *map)
{
    return perf_map_may_hold_code(&map->map) && !jit_dump_has_name(map->map.filename);
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
    const struct perf_map *map = &around->maps[index]->map;
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
        const struct perf_map *map = &around->maps[i]->map;
        int result = 0;
        if (is_executable_memory(around->maps[i]))
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
    free(around->maps);
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
    const struct recorded_map *map = around->maps[index];
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
        if (add_unknown_to_dumps(reader, name, start, stop, mapped_at(around, index) + 1))
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
        if (around->mapped[range->value] && around->maps[range->value]->map.filename[0] == '/' &&
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
    bool printable = code_name_is_printable(entry->name, bytes);
    if (!printable)
        report_quirk(reader->findings, QUIRK_NAME_UNPRINTABLE, "%s: the function at 0x%" PRIx64,
                     reader->path, entry->addr);
    return code_log_shown_name(&reader->process->log, entry->name, &bytes, printable);
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
        uint64_t mapped_ns = mapped_at(around, range->value);
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

/* ---- Whose it is ---- */

/* When each life first had memory that may hold code: its own, or what it inherited; UINT64_MAX:
 * never.  NULL without memory; the caller frees it. */
static uint64_t *find_memory(const struct process_lives *lives, const struct records *records)
{
    uint32_t *order = process_lives_order(lives);
    uint64_t *since_ns = order ? malloc((lives->count + 1) * sizeof *since_ns) : NULL;
    for (size_t i = 0; since_ns && i < lives->count; i++) {
        const struct process_life *life = &lives->items[order[i]];
        uint64_t *since = &since_ns[order[i]], begin_ns = life->begin.time_ns;
        size_t count;
        const struct recorded_map *maps =
            process_life_maps(records, life->pid, life->begin, life->next, &count);
        bool inherits = life->parent != NO_LIFE && since_ns[life->parent] <= begin_ns;
        *since = inherits ? begin_ns : UINT64_MAX;
        for (size_t m = 0; m < count && *since == UINT64_MAX; m++)
            if (may_hold_code(&maps[m]))
                *since = maps[m].time_ns;
    }
    free(order);
    return since_ns;
}

/* The last life of PID with memory that may hold code, by SINCE_NS: the map is that one's. NO_LIFE:
 * it never had any. */
static uint32_t life_of(const struct process_lives *lives, const uint64_t *since_ns, uint32_t pid)
{
    size_t count;
    uint32_t first = process_lives_of(lives, pid, &count);
    while (count && since_ns[first + count - 1] == UINT64_MAX)
        count--;
    return count ? first + (uint32_t)count - 1 : NO_LIFE;
}

/* ---- One process ---- */

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
        /* Found by chance of the pid.  Its process need not have a map: it has a dump, or runs
         * what another process logged, or no JIT at all. */
        report_finding(
            findings, around->given ? FINDING_MAP_ELSEWHERE : FINDING_MAP_STALE,
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

/* Add the maps of LIFE before NEXT. */
static int add_maps(struct surroundings *around, const struct process_life *life,
                    const struct records *records, struct life_moment next)
{
    size_t count;
    const struct recorded_map *maps =
        process_life_maps(records, life->pid, life->begin, next, &count);
    for (size_t i = 0; i < count; i++) {
        if (array_reserve(around->maps, around->map_count, around->map_capacity))
            return -1;
        around->maps[around->map_count++] = &maps[i];
    }
    return 0;
}

/* Add those that LIFE inherited, from its farthest ancestor on, and its own. */
static int gather_maps(struct surroundings *around, const struct process_lives *lives,
                       const struct records *records, uint32_t life)
{
    uint32_t *line = NULL;
    size_t count = 0, capacity = 0;
    int result = 0;
    for (; !result && life != NO_LIFE; life = lives->items[life].parent) {
        result = array_reserve(line, count, capacity);
        if (!result)
            line[count++] = life;
    }
    for (; !result && count; count--) {
        const struct process_life *own = &lives->items[line[count - 1]];
        result = add_maps(around, own, records,
                          count > 1 ? lives->items[line[count - 2]].begin : own->next);
    }
    free(line);
    return result;
}

/* TABLE, from PATH, is the map of LIFE; both are the process's then, or freed. */
static int take(struct jit_processes *processes, const struct perf_map_search *search,
                uint32_t life, bool given, struct perfmap_table *table, char *path,
                struct findings *findings)
{
    const struct process_lives *lives = &processes->lives;
    struct jit_process *process = jit_process_of_life(processes, life);
    struct surroundings around = {.given = given,
                                  .begin_ns = lives->items[life].begin.time_ns,
                                  .known_files = search->mapped_files};
    int result = -1;
    if (process && !gather_maps(&around, lives, search->records, life) && !survey_maps(&around) &&
        !survey_dumps(&around, &process->log)) {
        result = add_to_process(search, process, &around, table, path, findings);
    } else {
        perfmap_free(table);
        free(path);
        report_failure(findings, "out of memory");
    }
    free_surroundings(&around);
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

/* Take the map PATH, named by hand, of process PID: of its last life, if none has memory that may
 * hold code. */
static int take_given(struct jit_processes *processes, const struct perf_map_search *search,
                      const uint64_t *since_ns, uint32_t pid, const char *path,
                      struct findings *findings)
{
    struct perfmap_table *table;
    size_t count;
    uint32_t first = process_lives_of(&processes->lives, pid, &count);
    uint32_t life = life_of(&processes->lives, since_ns, pid);
    if (first == NO_LIFE)
        return report_failure(findings, "%s: process %" PRIu32 " of %s is not in this recording",
                              search->records->file->path, pid, path);
    if (perf_map_file_read(&table, path, findings))
        return -1;
    char *copy = strdup(path);
    if (!copy) {
        perfmap_free(table);
        return report_failure(findings, "out of memory");
    }
    return take(processes, search, life == NO_LIFE ? first + (uint32_t)count - 1 : life, true,
                table, copy, findings);
}

/* Take all that were named by hand; PIDS receives their processes. */
static int take_all_given(struct jit_processes *processes, const struct perf_map_search *search,
                          const uint64_t *since_ns, const struct perf_map_options *options,
                          uint32_t *pids, struct findings *findings)
{
    for (size_t i = 0; i < options->given_count; i++) {
        const char *path = options->given[i].path;
        if (pid_of(&options->given[i], &pids[i], findings))
            return -1;
        if (was_given(pids, i, pids[i]))
            return report_failure(findings, "%s: process %" PRIu32 " has another map given", path,
                                  pids[i]);
        if (take_given(processes, search, since_ns, pids[i], path, findings))
            return -1;
    }
    return 0;
}

/* Look for the maps of all processes with memory that may hold code, but for those of GIVEN. */
static int take_all_found(struct jit_processes *processes, const struct perf_map_search *search,
                          const uint64_t *since_ns, const uint32_t *given, size_t given_count,
                          struct findings *findings)
{
    const struct process_lives *lives = &processes->lives;
    for (size_t i = 0, count; i < lives->count; i += count) {
        uint32_t pid = lives->items[i].pid, life = life_of(lives, since_ns, pid);
        struct perfmap_table *table;
        char *path;
        process_lives_of(lives, pid, &count);
        if (life == NO_LIFE || was_given(given, given_count, pid))
            continue;
        if (perf_map_file_find(&table, &path, search, pid, lives->items[life].begin.time_ns,
                               findings) ||
            (table && take(processes, search, life, false, table, path, findings)))
            return -1;
    }
    return 0;
}

int perf_maps_read(struct jit_processes *processes, const struct records *records,
                   const struct perf_map_options *options, struct findings *findings)
{
    struct perf_map_search search;
    uint32_t *given = calloc(options->given_count + 1, sizeof *given);
    uint64_t *since_ns = find_memory(&processes->lives, records);
    int result = given && since_ns ? 0 : report_failure(findings, "out of memory");
    struct mapped_files mapped_files = {.root = options->root};
    perf_map_search_begin(&search, records, options->root);
    search.mapped_files = &mapped_files;
    mapped_files.is_elsewheres = !recording_host_is_here(&search.host);
    if (!result)
        result = take_all_given(processes, &search, since_ns, options, given, findings);
    if (!result && !options->only_given)
        result =
            take_all_found(processes, &search, since_ns, given, options->given_count, findings);
    free(given);
    free(since_ns);
    mapped_files_free(&mapped_files);
    return result;
}
