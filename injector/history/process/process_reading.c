/* See process_reading.h. */
#include "injector/history/process/process_reading.h"

#include "injector/arrays/array.h"
#include "injector/history/process/child_processes.h"
#include "injector/log/code/code_rivals.h"
#include "injector/log/code/log_reader.h"
#include "injector/log/code/mapped_code.h"
#include "injector/log/owner/dump_rivals.h"
#include "injector/log/owner/given_dump.h"
#include "injector/log/perf_map/perf_map_source.h"
#include "injector/recording/injected_map.h"
#include "injector/text/file_name.h"
#include "perfmap/perfmap.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* Where nobody had a function's addresses before, they can only be its own. */
#define AGENT_SLACK_NS UINT64_C(1000000000)

/* A log that was made already can be taken over if there is none yet. */
static bool take_log(struct jit_process *process, struct dump_claim *claim,
                     struct findings *findings)
{
    if (!claim->is_read || process->dump_count)
        return false;
    process->log = claim->log;
    claim->log = (struct code_log){0};
    code_log_convert(&process->log, &claim->clock);
    findings_move(findings, &claim->findings);
    return true;
}

/* DUMP belongs to LIFE; it and PATH are the process's then, and *DUMP and *PATH are emptied.
 * CLAIM: that it is of, and may have been read for, or NULL. */
static int take_dump(struct jit_processes *processes, uint32_t life, struct dump_claim *claim,
                     struct jit_dump *dump, char **path, const struct jit_clock *clock,
                     bool with_lines, struct findings *findings)
{
    struct jit_process *process = jit_process_of_life(processes, life);
    bool is_read = process && claim && take_log(process, claim, findings);
    if (!process ||
        (!is_read && code_log_read(&process->log, dump, (uint32_t)process->dump_count, clock,
                                   with_lines, findings)) ||
        jit_process_add_dump(process, dump, *path))
        return report_failure(findings, "out of memory");
    dump->data = NULL;
    *path = NULL;
    return 0;
}

static int take_given(struct jit_processes *processes, struct given_dumps *given,
                      const struct dump_claim_options *options, struct findings *findings)
{
    for (size_t i = 0; i < given->count; i++) {
        struct given_dump *item = &given->items[i];
        if (item->usable &&
            (unwritten_source_append(&options->unwritten, &item->dump,
                                     processes->lives.items[item->life].pid, findings) ||
             take_dump(processes, item->life, NULL, &item->dump, &item->path, &item->clock,
                       !options->no_lines, findings)))
            return -1;
    }
    return 0;
}

static int take_claims(struct jit_processes *processes, struct dump_claims *claims,
                       struct findings *findings)
{
    for (size_t i = 0; i < claims->count; i++) {
        struct dump_claim *claim = &claims->items[i];
        if (claim->state == CLAIM_FOUND &&
            take_dump(processes, claim->life, claim, &claim->dump, &claim->place.path,
                      &claim->clock, !claims->options.no_lines, findings))
            return -1;
    }
    return 0;
}

/* The markers of dumps that were read are not passed on: neither are they JIT code, nor anything
 * else that runs.  The markers of files that have nothing of their process are not passed on
 * either: readers of the output should not look for them again.  The others may still be named with
 * --jitdump. */
static int take_markers(struct jit_processes *processes, const struct dump_claims *claims,
                        struct findings *findings)
{
    for (size_t i = 0; i < claims->marker_count; i++) {
        const struct dump_marker *marker = &claims->markers[i];
        const struct dump_claim *claim = &claims->items[marker->claim];
        if (claim->state == CLAIM_REFUSED && !claim->over)
            continue;
        if (array_reserve(processes->marker_offsets, processes->marker_count,
                          processes->marker_capacity))
            return report_failure(findings, "out of memory");
        processes->marker_offsets[processes->marker_count++] = marker->offset;
    }
    return 0;
}

/* The dumps that could not be used: samples of their processes stay without names for that. */
static int take_refusals(struct jit_processes *processes, const struct dump_claims *claims,
                         struct findings *findings)
{
    for (size_t i = 0; i < claims->count; i++) {
        const struct dump_claim *claim = &claims->items[i];
        if (claim->state != CLAIM_REFUSED && !claim->anew_ns)
            continue;
        if (array_reserve(processes->refused, processes->refused_count,
                          processes->refused_capacity))
            return report_failure(findings, "out of memory");
        processes->refused[processes->refused_count++] = (struct refused_dump){
            claim->life, claim->anew_ns ? FINDING_DUMP_ANEW : claim->refusal, claim->anew_ns};
    }
    return 0;
}

/* ---- What the profile knows of each process ---- */

/* Some record with the trailer that the added records need: a map, else another record of the
 * process, else any. */
static void find_trailer_record(struct jit_process *process, const struct records *records)
{
    const struct sample_format *format;
    if (process->map_count)
        process->trailer_record = process->maps[process->map_count - 1].record;
    if (process->trailer_record.bytes)
        return;
    size_t count;
    const struct recorded_task *tasks = records_tasks_of(records, process->pid, &count);
    for (; count > 0 && !process->trailer_record.bytes; count--)
        if (perf_record_trailer(records->file, &tasks[count - 1].record, &format))
            process->trailer_record = tasks[count - 1].record;
    if (!process->trailer_record.bytes)
        records_any_trailer(records, &process->trailer_record);
}

/* perfjit's agent for Java is told of code by a thread that has others before it, and waits for a
 * processor as all do. */
static bool has_java_agent(const struct jit_process *process)
{
    static const char agent[] = "libperfjit-java.so";
    for (size_t i = 0; i < process->map_count; i++)
        if (strcmp(file_name_of(process->maps[i].map.filename), agent) == 0)
            return true;
    return false;
}

static int finish(struct jit_process *process, const struct records *records,
                  struct findings *findings)
{
    process->maps = process_life_maps(records, process->pid, process->begin, process->next,
                                      &process->map_count);
    if (has_java_agent(process)) {
        process->load_slack_ns = AGENT_SLACK_NS;
        process->unloads_in_time = true;
    }
    find_trailer_record(process, records);
    if (code_log_sort(&process->log, findings))
        return -1;
    if (process->dump_count > 1)
        code_log_drop_repeated(&process->log);
    return 0;
}

static size_t dump_count(const struct jit_processes *processes)
{
    size_t count = 0;
    for (size_t i = 0; i < processes->count; i++)
        count += processes->items[i].dump_count;
    return count;
}

/* Why neither dump nor map could be used, in one sentence.  NULL without memory. */
static char *why_no_code(const struct records *records, const struct findings *findings)
{
    char *text = NULL;
    const char *path = records->file->path;
    for (size_t i = 0; i < NO_DUMP_REASONS; i++) {
        const struct no_dump_reason *reason = &no_dump_reasons[i];
        if (findings->count[reason->kind])
            return asprintf(&text, "%s%s", findings->first[reason->kind], reason->remedy) < 0
                       ? NULL
                       : text;
    }
    const char *image = injected_image(records);
    int length =
        image ? asprintf(&text,
                         "%s: has been injected already: it names %s; give perfjit the recording "
                         "as perf record wrote it",
                         path, image)
              : asprintf(&text,
                         "%s: no jitdump found: no process in it mapped one (jit-<pid>.dump), and "
                         "none that has executable memory left a perf map that names code there "
                         "(/tmp/perf-<pid>.map); was the runtime told to write one (PERFJIT=dump, "
                         "node --perf-prof, ...)?  If it opened the dump before this recording "
                         "began (perf record -p, --switch-output), name the dump with --jitdump "
                         "FILE",
                         path);
    return length < 0 ? NULL : text;
}

static int read_dumps(struct jit_processes *processes, const struct records *records,
                      const struct jit_processes_request *request, struct given_dumps *given,
                      struct dump_claims *claims, struct findings *findings)
{
    return given_dumps_add_lives(given, &processes->lives, records, findings) ||
                   dump_claims_collect(claims, &request->claims, records, &processes->lives,
                                       findings) ||
                   given_dumps_assign(given, claims, findings) ||
                   dump_claims_settle(claims, findings) || dump_rivals_settle(claims, findings) ||
                   take_given(processes, given, &request->claims, findings) ||
                   take_claims(processes, claims, findings) ||
                   take_markers(processes, claims, findings) ||
                   take_refusals(processes, claims, findings) ||
                   perf_maps_read(processes, records, &request->perf_maps, findings) ||
                   v8_logs_read(processes, &request->v8_logs, findings) ||
                   mapped_code_show(processes, &request->source_maps, findings)
               ? -1
               : 0;
}

static int finish_all(struct jit_processes *processes, const struct records *records,
                      struct findings *findings)
{
    if (child_processes_find(processes, records, findings))
        return -1;
    for (size_t i = 0; i < processes->count; i++)
        if (finish(&processes->items[i], records, findings))
            return -1;
    if (!perf_file_has_times(records->file) && code_rivals_drop(processes))
        return report_failure(findings, "out of memory");
    return child_processes_find_touched(processes, findings);
}

enum recording_result jit_processes_read(struct jit_processes *processes,
                                         const struct records *records,
                                         const struct jit_processes_request *request,
                                         struct findings *findings)
{
    struct dump_claims claims = {0};
    struct given_dumps given;
    *processes = (struct jit_processes){0};
    int result = given_dumps_open(&given, request->dumps, request->dump_count, findings);
    if (!result)
        result = process_lives_read(&processes->lives, records, findings);
    if (!result)
        result = read_dumps(processes, records, request, &given, &claims, findings);
    dump_claims_free(&claims);
    given_dumps_free(&given);
    if (!result && dump_count(processes) == 0) {
        jit_processes_clear(processes);
        processes->no_code = why_no_code(records, findings);
        if (processes->no_code)
            return RECORDING_WITHOUT_CODE;
        result = report_failure(findings, "out of memory");
    }
    return result || finish_all(processes, records, findings) ? RECORDING_FAILED : RECORDING_OPEN;
}
