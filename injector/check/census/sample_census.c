/* See sample_census.h. */
#include "injector/check/census/sample_census.h"

#include "injector/arrays/array.h"
#include "injector/check/census/sample_order.h"
#include "injector/log/perf_map/perf_map_file.h"
#include "injector/recording/injected_map.h"
#include "injector/recording/perf_data/perf_format.h"
#include "injector/recording/perf_data/perf_sample.h"
#include "injector/recording/silent_runtime.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096 };

struct collector {
    struct sample_census *census;
    const struct census_question *question;
    const struct process_lives *lives;
    struct perf_map_search maps;
    bool is_injected;
    struct census_sample *samples;
    size_t sample_count, sample_capacity;
    uint32_t pid; /* of the last sample, and its life */
    uint32_t life;
};

/* ---- Collecting ---- */

static int add_sample(struct collector *collector, const struct census_sample *sample)
{
    if (array_reserve(collector->samples, collector->sample_count, collector->sample_capacity))
        return -1;
    collector->samples[collector->sample_count++] = *sample;
    return 0;
}

/* Samples of one process mostly follow one another. */
static uint32_t life_at(struct collector *collector, uint32_t pid, struct life_moment moment)
{
    if (collector->life != NO_LIFE && collector->pid == pid &&
        !life_moment_before(moment, collector->lives->items[collector->life].begin) &&
        life_moment_before(moment, collector->lives->items[collector->life].next))
        return collector->life;
    collector->pid = pid;
    collector->life = process_life_at(collector->lives, pid, moment);
    return collector->life;
}

static int take_record(struct collector *collector, const struct perf_record *record)
{
    const struct perf_file *file = collector->question->records->file;
    struct sample_census *census = collector->census;
    struct sample_place place;
    census->samples++;
    const bool is_known = perf_record_sample_place(file, record, &place);
    if (place.mode != PERF_MISC_USER) {
        census->outside_user++;
        return 0;
    }
    if (!is_known || !place.has_ip || !place.has_time) {
        census->incomplete++;
        return 0;
    }
    const uint32_t life =
        life_at(collector, place.pid, (struct life_moment){place.time_ns, record->number});
    if (life != NO_LIFE)
        return add_sample(collector, &(struct census_sample){
                                         .time_ns = place.time_ns, .ip = place.ip, .life = life});
    census->unmapped++;
    return 0;
}

static int collect(struct collector *collector)
{
    struct perf_walk walk = perf_walk_begin(collector->question->records->file);
    struct perf_record record;
    int result = 0;
    collector->samples = array_expect(NULL, collector->question->records->sample_count,
                                      &collector->sample_capacity, sizeof *collector->samples);
    while (!result && perf_walk_next(&walk, &record, NULL))
        if (record.type == PERF_RECORD_SAMPLE)
            result = take_record(collector, &record);
    return result ? result
                  : sample_order(&collector->samples, collector->sample_count,
                                 collector->lives->count);
}

/* ---- Classifying ---- */

/* The nearest life with JIT code: LIFE itself, or an ancestor. */
static const struct jit_process *source_of(const struct collector *collector, uint32_t life)
{
    const struct jit_process *found = NULL;
    for (; life != NO_LIFE && !found; life = collector->lives->items[life].parent)
        found = jit_processes_find(collector->question->processes, life);
    return found;
}

static bool find_refusal(const struct collector *collector, uint32_t life, enum sample_cause *cause)
{
    const struct jit_processes *processes = collector->question->processes;
    for (; life != NO_LIFE; life = collector->lives->items[life].parent)
        for (size_t i = 0; i < processes->refused_count; i++)
            if (processes->refused[i].life == life && !processes->refused[i].anew_ns) {
                *cause = sample_cause_of_refusal(processes->refused[i].why);
                return true;
            }
    return false;
}

/* Until when LIFE logged into dumps that were written anew then; 0: it did not. */
static uint64_t anew_ns_of(const struct collector *collector, uint32_t life)
{
    const struct jit_processes *processes = collector->question->processes;
    uint64_t anew_ns = 0;
    for (; life != NO_LIFE; life = collector->lives->items[life].parent)
        for (size_t i = 0; i < processes->refused_count; i++)
            if (processes->refused[i].life == life && processes->refused[i].anew_ns > anew_ns)
                anew_ns = processes->refused[i].anew_ns;
    return anew_ns;
}

static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* LENGTH bytes of DIRECTORY are its name; 0: the current one.  libjitdump makes a directory for
 * each process. */
static bool is_in(const char *directory, size_t length, uint32_t pid)
{
    char path[PATH_BYTES];
    const char *slash = length ? "/" : "";
    int written = snprintf(path, sizeof path, "%.*s%sjit-%" PRIu32 ".dump", (int)length, directory,
                           slash, pid);
    if (written < PATH_BYTES && is_file(path))
        return true;
    written = snprintf(path, sizeof path, "%.*s%sjitdump-%" PRIu32 "/jit-%" PRIu32 ".dump",
                       (int)length, directory, slash, pid, pid);
    return written < PATH_BYTES && is_file(path);
}

/* Whether jit-PID.dump, which the recording PROFILE does not name, lies where runtimes leave
 * theirs: beside it, in the current directory, in $JITDUMPDIR, or in /tmp. */
static bool dump_is_nearby(const char *profile, uint32_t pid)
{
    const char *slash = strrchr(profile, '/'), *directory = getenv("JITDUMPDIR");
    return (slash && is_in(profile, (size_t)(slash - profile), pid)) || is_in("", 0, pid) ||
           (directory && is_in(directory, strlen(directory), pid)) || is_in("/tmp", 4, pid);
}

/* Whether LIFE, or what it was forked from, runs a runtime that logs no code, whatever it is told.
 */
static bool is_silent(const struct collector *collector, uint32_t life)
{
    const struct process_life *lives = collector->lives->items;
    for (; life != NO_LIFE; life = lives[life].parent) {
        size_t count;
        const struct recorded_map *maps =
            process_life_maps(collector->question->records, lives[life].pid, lives[life].begin,
                              lives[life].next, &count);
        for (size_t i = 0; i < count; i++)
            if (silent_runtime(maps[i].map.filename))
                return true;
        if (lives[life].execed)
            return false;
    }
    return false;
}

/* The cause for samples of LIFE at addresses that no function in a log ever had. */
static enum sample_cause cause_of_life(const struct collector *collector, uint32_t life)
{
    const struct jit_process *source = source_of(collector, life);
    const struct process_life *item = &collector->lives->items[life];
    uint32_t pid = item->pid;
    enum sample_cause cause;
    if (find_refusal(collector, life, &cause))
        return cause;
    if (source)
        return source->perf_map && source->dump_count == 1 ? CAUSE_NOT_IN_MAP : CAUSE_NOT_LOGGED;
    if (collector->is_injected)
        return CAUSE_INJECTED;
    if (dump_is_nearby(collector->question->records->file->path, pid))
        return CAUSE_NO_MARKER;
    bool has_map = !collector->question->no_perf_map &&
                   perf_map_file_is_there(&collector->maps, pid, item->begin.time_ns);
    if (has_map)
        return CAUSE_MAP_REFUSED;
    return is_silent(collector, life) ? CAUSE_NO_MEANS : CAUSE_NO_DUMP;
}

static int count_unknown(struct collector *collector, const struct census_sample *sample,
                         enum sample_cause cause)
{
    struct sample_census *census = collector->census;
    census->unknown++;
    for (size_t i = census->group_count; i-- > 0 && census->groups[i].life == sample->life;) {
        struct unknown_samples *group = &census->groups[i];
        if (group->cause != cause)
            continue;
        group->count++;
        if (sample->time_ns < group->first_ns) {
            group->first_ns = sample->time_ns;
            group->first_ip = sample->ip;
        }
        return 0;
    }
    if (array_reserve(census->groups, census->group_count, census->group_capacity))
        return -1;
    census->groups[census->group_count++] =
        (struct unknown_samples){.life = sample->life,
                                 .cause = cause,
                                 .count = 1,
                                 .first_ip = sample->ip,
                                 .first_ns = sample->time_ns,
                                 .pid = collector->lives->items[sample->life].pid};
    return 0;
}

/* The COUNT samples are sorted by time.  Mark in FOUND those at an address for which LOG has a
 * function.  With LATER the function was loaded after the sample, else before it. */
static int find_logged(const struct code_log *log, const struct census_sample *samples,
                       size_t count, bool later, bool *found)
{
    struct address_map logged = {0};
    int result = 0;
    size_t done = 0;
    for (size_t s = 0; !result && s < count; s++) {
        size_t at = later ? count - 1 - s : s;
        for (; !result && done < log->event_count; done++) {
            const struct code_event *event =
                &log->events[later ? log->event_count - 1 - done : done];
            if (later ? event->time_ns <= samples[at].time_ns
                      : event->time_ns > samples[at].time_ns)
                break;
            const struct jit_function *function = code_event_function(log, event);
            if (function)
                result =
                    address_map_set(&logged, function->addr, function->addr + function->size, 0);
        }
        found[at] = address_map_meets(&logged, samples[at].ip, samples[at].ip + 1);
    }
    address_map_free(&logged);
    return result;
}

/* The same for functions that have rivals, in PROCESS and in what it inherits; no events are left
 * of these.  Returns 0, or -1 without memory. */
static int find_rivals(const struct jit_process *process, const struct census_sample *samples,
                       size_t count, bool *found)
{
    struct address_map rivals = {0};
    int result = 0;
    for (; process && !result; process = process->parent)
        for (size_t i = 0; !result && i < process->log.function_count; i++) {
            const struct jit_function *function = &process->log.functions[i];
            if (function->rival)
                result =
                    address_map_set(&rivals, function->addr, function->addr + function->size, 0);
        }
    for (size_t i = 0; !result && i < count; i++)
        found[i] = address_map_meets(&rivals, samples[i].ip, samples[i].ip + 1);
    address_map_free(&rivals);
    return result;
}

/* Whether the function that SAMPLE hit may have been logged in the part of PROCESS's dump that is
 * not there: it is logged before it runs, and the dump ends before the sample. */
static bool is_behind_cut(const struct jit_process *process, const struct census_sample *sample)
{
    const struct code_log *log = process ? &process->log : NULL;
    return log && log->cut &&
           (!log->event_count || log->events[log->event_count - 1].time_ns <= sample->time_ns);
}

/* Why SAMPLE, in the memory of a JIT, has no name. */
static enum sample_cause cause_of(const struct census_sample *sample,
                                  const struct jit_process *process, bool later, bool earlier,
                                  enum sample_cause of_life)
{
    const struct code_history *history = process ? &process->log.history : NULL;
    if (history && history->dropped && sample->time_ns < history->begin_ns)
        return CAUSE_DROPPED;
    if (sample->facts.last == ADDRESS_GONE)
        return CAUSE_FREED;
    if (sample->facts.last == ADDRESS_FUNCTION)
        return CAUSE_REMAPPED;
    if (later)
        return CAUSE_BEFORE_LOAD;
    if (earlier)
        return CAUSE_FREED;
    if (of_life != CAUSE_NOT_LOGGED || !is_behind_cut(process, sample))
        return of_life;
    return process->log.stubs_unread ? CAUSE_STUBS_UNREAD : CAUSE_NOT_WRITTEN;
}

static int explain_unknown(struct collector *collector, const struct census_sample *samples,
                           size_t count)
{
    const struct jit_process *process =
        jit_processes_find(collector->question->processes, samples->life);
    enum sample_cause of_life = cause_of_life(collector, samples->life);
    uint64_t anew_ns = anew_ns_of(collector, samples->life);
    bool *later = calloc(count, 1), *earlier = calloc(count, 1), *rivals = calloc(count, 1);
    int result = later && earlier && rivals ? 0 : -1;
    if (!result && !perf_file_has_times(collector->question->records->file))
        result = find_rivals(source_of(collector, samples->life), samples, count, rivals);
    if (!result && process)
        result = find_logged(&process->log, samples, count, true, later) ||
                         find_logged(&process->log, samples, count, false, earlier)
                     ? -1
                     : 0;
    for (size_t i = 0; !result && i < count; i++)
        result = count_unknown(collector, &samples[i],
                               rivals[i] ? CAUSE_NO_TIMES
                               : samples[i].time_ns < anew_ns
                                   ? CAUSE_DUMP_ANEW
                                   : cause_of(&samples[i], process, later[i], earlier[i], of_life));
    free(later);
    free(earlier);
    free(rivals);
    return result;
}

/* Count the COUNT samples of one life; those that are unknown are moved to the front of SAMPLES. */
static int classify(struct collector *collector, struct census_sample *samples, size_t count)
{
    struct sample_census *census = collector->census;
    size_t unknown = 0;
    for (size_t i = 0; i < count; i++) {
        struct census_sample sample = samples[i];
        uint8_t shown = sample.facts.shown;
        if (shown == ADDRESS_FUNCTION)
            census->named++;
        else if (shown == ADDRESS_FILE)
            census->in_files++;
        else if (shown == ADDRESS_NOTHING)
            census->unmapped++;
        else
            samples[unknown++] = sample;
    }
    return unknown ? explain_unknown(collector, samples, unknown) : 0;
}

static int classify_all(struct collector *collector)
{
    for (size_t at = 0, count; at < collector->sample_count; at += count) {
        for (count = 1; at + count < collector->sample_count; count++)
            if (collector->samples[at + count].life != collector->samples[at].life)
                break;
        if (classify(collector, collector->samples + at, count))
            return -1;
    }
    return 0;
}

static int compare_groups(const void *left, const void *right)
{
    const struct unknown_samples *a = left, *b = right;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    if (a->life != b->life)
        return a->life < b->life ? -1 : 1;
    return (int)a->cause - (int)b->cause;
}

static int take(struct collector *collector)
{
    struct sample_census *census = collector->census;
    const struct census_question *question = collector->question;
    if (collect(collector) ||
        sample_states_find(collector->samples, collector->sample_count, question) ||
        classify_all(collector))
        return -1;
    if (census->group_count)
        qsort(census->groups, census->group_count, sizeof *census->groups, compare_groups);
    for (size_t i = 0; i < census->group_count; i++)
        process_life_comm(collector->lives, question->records, census->groups[i].life,
                          census->groups[i].comm);
    return 0;
}

int sample_census_take(struct sample_census *census, const struct census_question *question,
                       struct findings *findings)
{
    struct collector collector = {.census = census,
                                  .question = question,
                                  .lives = &question->processes->lives,
                                  .life = NO_LIFE,
                                  .is_injected = injected_image(question->records)};
    *census = (struct sample_census){0};
    perf_map_search_begin(&collector.maps, question->records, question->root);
    int result = take(&collector);
    free(collector.samples);
    return result ? report_failure(findings, "out of memory") : 0;
}

void sample_census_free(struct sample_census *census)
{
    free(census->groups);
    *census = (struct sample_census){0};
}
