/* See snapshot_code.h. */
#include "injector/debug/snapshot_code.h"

#include "injector/arrays/array.h"
#include "injector/debug/snapshot/core_file.h"
#include "injector/debug/snapshot/core_map.h"
#include "injector/debug/snapshot/live_snapshot.h"
#include "injector/debug/snapshot/snapshot.h"
#include "injector/debug/snapshot/snapshot_recording.h"
#include "injector/history/process/interpreted_functions.h"
#include "injector/history/timeline/timeline.h"
#include "injector/log/code/jit_process.h"
#include "injector/log/jitdump/jit_dump.h"
#include "injector/text/plural.h"
#include "injector/text/printable_text.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Whether there is JIT code ---- */

/* Tests whether the code in a dump is in the memory of the process.  A dump of another run, or of a
 * later process with the same pid, has other code, and mostly at other addresses.
 *
 * Runtimes change code that they have logged (V8 the objects' addresses in it), and free some
 * without a word, so that one function proves nothing.
 */

struct code_evidence {
    size_t compared; /* functions alive that have bytes in the dump, and memory in the snapshot */
    size_t present;  /* of them, those whose bytes are mostly the same */
};

/* The number of functions, evenly chosen, of which the first bytes are compared. */
enum { MOST_COMPARED = 4096, FIRST_BYTES = 64 };

/* Code in a file is there no matter who logged it, and memory that a core leaves out is not
 * known. */
static bool can_be_compared(const struct snapshot *snapshot, const struct jit_function *function)
{
    const struct snapshot_map *map = snapshot_map_at(snapshot, function->addr);
    if (!function->code || !function->size || snapshot_map_is_file(map))
        return false;
    return !map || snapshot->live || map->byte_count;
}

static bool is_present(const struct snapshot *snapshot, const struct jit_function *function)
{
    uint8_t bytes[FIRST_BYTES];
    size_t count = function->size < FIRST_BYTES ? (size_t)function->size : (size_t)FIRST_BYTES;
    size_t equal = 0;
    if (!snapshot_read(snapshot, function->addr, bytes, count))
        return false;
    for (size_t i = 0; i < count; i++)
        equal += bytes[i] == function->code[i];
    return 2 * equal >= count;
}

/* Compare functions of the COUNT PROCESSES, by their TIMELINES, with SNAPSHOT. */
static struct code_evidence code_evidence_take(const struct snapshot *snapshot,
                                               const struct jit_processes *processes,
                                               const struct timeline *timelines)
{
    struct code_evidence evidence = {0};
    for (size_t i = 0; i < processes->count; i++) {
        const struct code_log *log = timelines[i].log;
        size_t step = log->function_count / MOST_COMPARED + 1;
        for (size_t j = 0; j < log->function_count; j += step) {
            if (!timelines[i].states[j].visible || !can_be_compared(snapshot, &log->functions[j]))
                continue;
            evidence.compared++;
            evidence.present += is_present(snapshot, &log->functions[j]);
        }
    }
    return evidence;
}

/* ---- What was not written ---- */

static bool read_snapshot(void *context, uint64_t addr, void *bytes, size_t count)
{
    return snapshot_read(context, addr, bytes, count);
}

/* As unwritten_source.find, of a core. */
static int find_unwritten(void *context, const struct jit_dump *dump, uint32_t pid,
                          struct unwritten_records *found)
{
    const struct snapshot *snapshot = context;
    struct process_memory memory = {.file_number = -1, .read = read_snapshot, .context = context};
    *found = (struct unwritten_records){0};
    for (size_t i = 0; pid == snapshot->pid && i < snapshot->map_count; i++) {
        const struct snapshot_map *map = &snapshot->maps[i];
        if (map->executable || !map->byte_count)
            continue;
        if (array_reserve(memory.ranges, memory.range_count, memory.range_capacity)) {
            free(memory.ranges);
            return -1;
        }
        memory.ranges[memory.range_count++] =
            (struct memory_range){map->start, map->start + map->byte_count};
    }
    int result = unwritten_records_find(found, dump, &memory);
    free(memory.ranges);
    return result;
}

/* ---- Options ---- */

static bool take_number(const char *text, uint64_t most, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 0);
    return text[0] >= '0' && text[0] <= '9' && !*end && !errno && *number && *number <= most;
}

error_t snapshot_request_take(struct snapshot_request *request, int key, char *argument,
                              struct argp_state *state)
{
    uint64_t number;
    switch (key) {
    case 'p':
        if (!take_number(argument, INT32_MAX, &number))
            argp_error(state, "--pid is a process's number, not '%s'", printable_copy(argument));
        request->pid = (uint32_t)number;
        return 0;
    case KEY_SNAPSHOT_AT:
        if (!take_number(argument, INT64_MAX - 1, &request->at_ns))
            argp_error(state, "--at is a time in ns, not '%s'", printable_copy(argument));
        return 0;
    case 'f':
        request->recording.any_owner = true;
        return 0;
    case 'v':
        request->verbose = true;
        return 0;
    default:
        return recording_request_take(&request->recording, key, argument);
    }
}

void snapshot_request_free(struct snapshot_request *request)
{
    recording_request_free(&request->recording);
}

/* ---- From the process to its code ---- */

/* Whether it is of a process, and not made up of a dump alone. */
static bool has_memory(const struct snapshot_request *request)
{
    return request->core || request->pid;
}

/* The machine of a DUMP alone, which is this one if it names none.  NULL: it is not known. */
static const struct machine *machine_of_dump(const struct jit_dump *dump)
{
    const struct machine *machine =
        machine_of_elf(dump->elf_mach, dump->address_bytes, dump->big_endian);
    if (dump->elf_mach == EM_NONE)
        return machine_here();
    return machine ? machine : machine_numbered(dump->elf_mach);
}

/* Take the pid and machine of the process from its dump. */
static int take_dump(struct snapshot *snapshot, const struct given_file *given,
                     struct findings *findings)
{
    const char *path = given->path;
    struct jit_dump dump;
    char cause[256], machine[MACHINE_TEXT_BYTES];
    *snapshot = (struct snapshot){.path = path};
    int result = jit_dump_open(&dump, path, cause, sizeof cause);
    snapshot->pid = given->pid ? given->pid : dump.pid;
    snapshot->machine = machine_of_dump(&dump);
    jit_dump_close(&dump);
    if (result)
        return report_failure(findings, "%s: %s", path, cause);
    if (!snapshot->machine)
        return report_failure(findings, "%s: its code is of %s, which is not known", path,
                              machine_text(machine, dump.elf_mach));
    struct snapshot_thread *thread = snapshot_add_thread(snapshot);
    if (!thread)
        return report_failure(findings, "out of memory");
    thread->tid = snapshot->pid;
    return 0;
}

static int take_snapshot(struct snapshot_code *code, const struct snapshot_request *request,
                         bool stacks, struct findings *findings)
{
    code->time_ns = SNAPSHOT_LAST_NS;
    if (request->core)
        return core_file_open(&code->snapshot, request->core, findings);
    if (!request->pid)
        return take_dump(&code->snapshot, &request->recording.dumps[0], findings);
    snprintf(code->live_path, sizeof code->live_path, "/proc/%" PRIu32, request->pid);
    return live_snapshot_take(&code->snapshot, code->live_path, request->pid, machine_here(),
                              stacks, &code->time_ns, findings);
}

/* Read the dumps and maps that the snapshot's recording leads to.  A core's perf map is looked for
 * by rules of its own (core_map.h), unless one was given. */
static enum recording_result view_recording(struct snapshot_code *code,
                                            const struct snapshot_request *request,
                                            struct findings *findings)
{
    struct recording_request wanted = request->recording;
    char *path = NULL;
    bool looks = request->core && !wanted.perf_map_count && !wanted.no_perf_map;
    if (looks && core_map_find(&path, &code->snapshot, wanted.root, findings))
        return RECORDING_FAILED;
    struct given_file given = {path, path, code->snapshot.pid};
    wanted.no_perf_map = wanted.no_perf_map || request->core;
    wanted.perf_maps = path ? &given : wanted.perf_maps;
    wanted.perf_map_count = path ? 1 : wanted.perf_map_count;
    if (request->core)
        wanted.unwritten = (struct unwritten_source){find_unwritten, &code->snapshot, true};
    enum recording_result result =
        recording_view(&code->recording, code->snapshot.path, code->bytes.data, code->bytes.size,
                       &wanted, findings);
    free(path);
    return result;
}

static const char *first_dump(const struct snapshot_code *code)
{
    const struct jit_processes *processes = &code->recording.processes;
    for (size_t i = 0; i < processes->count; i++)
        if (processes->items[i].dump_count)
            return processes->items[i].dump_paths[0];
    return "its perf map";
}

/* Names of another process's code would be wrong, each of them. */
static int check_evidence(const struct snapshot_code *code, struct findings *findings)
{
    struct code_evidence evidence =
        code_evidence_take(&code->snapshot, &code->recording.processes, code->recording.timelines);
    if (evidence.compared && !evidence.present)
        return report_failure(findings,
                              "%s: of the %zu function%s of %s that were compared none is in the "
                              "memory of process %" PRIu32 ": it is the dump of another run, or of "
                              "a later process with the same pid; if the right one was kept, name "
                              "it with --jitdump FILE, and move this one away",
                              code->snapshot.path, evidence.compared, plural(evidence.compared),
                              first_dump(code), code->snapshot.pid);
    report_note(findings, "%s: of %zu function%s that were compared %zu %s in its memory",
                code->snapshot.path, evidence.compared, plural(evidence.compared), evidence.present,
                is_or_are(evidence.present));
    return 0;
}

/* Drop the code that was logged after a chosen time. */
static void drop_later(struct jit_processes *processes, uint64_t at_ns)
{
    for (size_t i = 0; i < processes->count; i++) {
        struct code_log *log = &processes->items[i].log;
        while (log->event_count && log->events[log->event_count - 1].time_ns > at_ns)
            log->event_count--;
    }
}

/* Whether findings say why no dump and no map is used: a dump was there. */
static bool has_reason(const struct findings *findings)
{
    for (size_t i = 0; i < NO_DUMP_REASONS; i++)
        if (findings->count[no_dump_reasons[i].kind])
            return true;
    return false;
}

static int set_none(struct snapshot_code *code, struct findings *findings)
{
    if (has_reason(findings))
        code->none = strdup(code->recording.processes.no_code);
    else if (asprintf(&code->none,
                      "%s: process %" PRIu32 " had mapped no jitdump, and left no perf map "
                      "(/tmp/perf-%" PRIu32
                      ".map): was its runtime told to write one (PERFJIT=dump, "
                      "node --perf-prof, ...)?  If the process did not keep it mapped, name it "
                      "with --jitdump FILE",
                      code->snapshot.path, code->snapshot.pid, code->snapshot.pid) < 0)
        code->none = NULL;
    return code->none ? 0 : report_failure(findings, "out of memory");
}

/* The functions that an interpreter runs in the threads' stacks. */
static int add_interpreted(struct snapshot_code *code, struct findings *findings)
{
    const struct snapshot *snapshot = &code->snapshot;
    struct jit_processes *processes = &code->recording.processes;
    const uint32_t life = process_life_at(&processes->lives, snapshot->pid,
                                          (struct life_moment){code->time_ns, UINT64_MAX});
    const uint32_t number =
        life == NO_LIFE || !processes->by_life ? NO_PROCESS : processes->by_life[life];
    for (size_t i = 0; number != NO_PROCESS && i < snapshot->thread_count; i++) {
        const struct snapshot_thread *thread = &snapshot->threads[i];
        if (thread->stack &&
            interpreted_functions_note(&processes->items[number].log, thread->stack,
                                       thread->stack_start, thread->stack_bytes, code->time_ns))
            return report_failure(findings, "out of memory");
    }
    return interpreted_functions_place(processes, &code->recording.records, findings);
}

int snapshot_code_open(struct snapshot_code *code, const struct snapshot_request *request,
                       bool stacks, struct findings *findings)
{
    if (take_snapshot(code, request, stacks, findings))
        return -1;
    if (request->at_ns)
        code->time_ns = request->at_ns;
    if (snapshot_recording_write(&code->snapshot, code->time_ns, &code->bytes, findings))
        return -1;
    enum recording_result result = view_recording(code, request, findings);
    if (result == RECORDING_FAILED ||
        (result == RECORDING_WITHOUT_CODE && set_none(code, findings)))
        return -1;
    if (request->at_ns)
        drop_later(&code->recording.processes, request->at_ns);
    if ((stacks && add_interpreted(code, findings)) ||
        (!stacks && recording_print_names(&code->recording, findings)) ||
        recording_play(&code->recording, findings))
        return -1;
    return code->none || !has_memory(request) ? 0 : check_evidence(code, findings);
}

void snapshot_code_close(struct snapshot_code *code)
{
    free(code->none);
    recording_free(&code->recording);
    memory_file_free(&code->bytes);
    snapshot_free(&code->snapshot);
}
