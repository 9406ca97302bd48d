/* See code_log.h. */
#include "injector/jit/code_log.h"

#include "injector/array.h"
#include "injector/jit/unwind_info.h"

#include <inttypes.h>
#include <string.h>

struct log_reader {
    struct code_log *log;
    const struct jit_dump *dump;
    const struct jit_clock *clock;
    struct findings *findings;
    uint32_t dump_index;
};

static int append_event(struct code_log *log, uint64_t time_ns, enum code_event_kind kind,
                        size_t index)
{
    struct code_event *events =
        array_room(log->events, log->event_count, &log->event_capacity, sizeof *events);
    if (!events)
        return -1;
    log->events = events;
    events[log->event_count++] = (struct code_event){time_ns, kind, (uint32_t)index};
    return 0;
}

static int add_event(struct log_reader *reader, const struct jit_record *record,
                     enum code_event_kind kind, size_t index)
{
    return append_event(reader->log, jit_clock_to_perf(reader->clock, record->timestamp), kind,
                        index);
}

static struct jit_function *append_function(struct code_log *log, uint32_t dump_index)
{
    struct jit_function *functions =
        array_room(log->functions, log->function_count, &log->function_capacity, sizeof *functions);
    if (!functions || log->function_count >= NO_IMAGE)
        return NULL;
    log->functions = functions;
    struct jit_function *function = &functions[log->function_count++];
    *function = (struct jit_function){.dump = dump_index, .image = NO_IMAGE};
    return function;
}

static struct jit_function *add_function(struct log_reader *reader)
{
    return append_function(reader->log, reader->dump_index);
}

static int add_load(struct log_reader *reader, const struct jit_record *record)
{
    const struct jit_load *load = &record->load;
    struct jit_function *function = add_function(reader);
    if (!function)
        return -1;
    function->addr = load->code_addr;
    function->size = load->code_size;
    function->code_index = load->code_index;
    function->name = load->name[0] ? load->name : "[unnamed JIT code]";
    function->code = load->code;
    if (!load->code)
        finding(reader->findings, FINDING_BYTES_ABSENT,
                "%s: record %" PRIu64 " at 0x%" PRIx64 ": %s", reader->dump->path, record->number,
                record->offset, function->name);
    return add_event(reader, record, CODE_EVENT_LOAD, reader->log->function_count - 1);
}

static int add_move(struct log_reader *reader, const struct jit_record *record)
{
    struct code_log *log = reader->log;
    const struct jit_move *move = &record->move;
    struct code_move *moves =
        array_room(log->moves, log->move_count, &log->move_capacity, sizeof *moves);
    if (!moves)
        return -1;
    log->moves = moves;
    struct jit_function *function = add_function(reader);
    if (!function)
        return -1;
    function->addr = move->new_code_addr;
    function->size = move->code_size;
    function->code_index = move->code_index;
    moves[log->move_count++] =
        (struct code_move){move->old_code_addr, (uint32_t)(log->function_count - 1)};
    return add_event(reader, record, CODE_EVENT_MOVE, log->move_count - 1);
}

static int add_unload(struct log_reader *reader, const struct jit_record *record)
{
    struct code_log *log = reader->log;
    const struct jit_unload *unload = &record->unload;
    struct code_unload *unloads =
        array_room(log->unloads, log->unload_count, &log->unload_capacity, sizeof *unloads);
    if (!unloads)
        return -1;
    log->unloads = unloads;
    unloads[log->unload_count++] =
        (struct code_unload){unload->code_addr, unload->code_size, unload->code_index};
    return add_event(reader, record, CODE_EVENT_UNLOAD, log->unload_count - 1);
}

static int add_blob(struct log_reader *reader, const struct jit_record *record)
{
    struct code_log *log = reader->log;
    struct unwind_blob *blobs =
        array_room(log->blobs, log->blob_count, &log->blob_capacity, sizeof *blobs);
    if (!blobs)
        return -1;
    log->blobs = blobs;
    log->has_unwinding = true;
    blobs[log->blob_count++] = (struct unwind_blob){record->unwinding_info, record->number,
                                                    record->offset, log->function_count};
    return 0;
}

static int add_record(struct log_reader *reader, const struct jit_record *record)
{
    if (record->broken) {
        finding(reader->findings, FINDING_RECORD_BROKEN,
                "%s: record %" PRIu64 " at 0x%" PRIx64 ": %s", reader->dump->path, record->number,
                record->offset, record->broken);
        return 0;
    }
    switch (record->id) {
    case JIT_CODE_LOAD:
        return add_load(reader, record);
    case JIT_CODE_MOVE:
        return add_move(reader, record);
    case JIT_CODE_UNLOAD:
        return add_unload(reader, record);
    case JIT_CODE_UNWINDING_INFO:
        return add_blob(reader, record);
    default:
        if (!jit_record_name(record->id))
            finding(reader->findings, FINDING_RECORD_UNKNOWN,
                    "%s: record %" PRIu64 " at 0x%" PRIx64 ": id %" PRIu32 ", %" PRIu32 " bytes",
                    reader->dump->path, record->number, record->offset, record->id,
                    record->total_size);
        return 0;
    }
}

int code_log_add(struct code_log *log, const struct jit_dump *dump, uint32_t dump_index,
                 const struct jit_clock *clock, struct findings *findings)
{
    struct log_reader reader = {log, dump, clock, findings, dump_index};
    struct jit_dump_walk walk = jit_dump_begin(dump);
    struct jit_record record;
    enum jit_dump_end end;
    while ((end = jit_dump_next(&walk, &record)) == JIT_DUMP_MORE)
        if (add_record(&reader, &record))
            return failure(findings, "out of memory");
    if (end == JIT_DUMP_CUT)
        finding(findings, FINDING_DUMP_TRUNCATED,
                "%s: record %" PRIu64 " at 0x%" PRIx64 ": %" PRIu32
                " bytes long by its prefix, %" PRIu64 " are left",
                dump->path, record.number, record.offset, record.total_size,
                (uint64_t)dump->size - record.offset);
    if (unwind_info_assign(log, dump, findings))
        return failure(findings, "out of memory");
    return 0;
}

int code_log_add_named(struct code_log *log, uint32_t dump_index, uint64_t time_ns, uint64_t addr,
                       uint64_t size, const char *name)
{
    struct jit_function *function = append_function(log, dump_index);
    if (!function)
        return -1;
    function->addr = addr;
    function->size = size;
    function->name = name;
    return append_event(log, time_ns, CODE_EVENT_LOAD, log->function_count - 1);
}

static bool sorted(const struct code_log *log)
{
    for (size_t i = 1; i < log->event_count; i++)
        if (log->events[i].time_ns < log->events[i - 1].time_ns)
            return false;
    return true;
}

/* Merge the sorted runs [0, half) and [half, count) of FROM into TO. */
static void merge(struct code_event *to, const struct code_event *from, size_t half, size_t count)
{
    size_t left = 0, right = half;
    for (size_t i = 0; i < count; i++) {
        bool take_right =
            left == half || (right < count && from[right].time_ns < from[left].time_ns);
        to[i] = take_right ? from[right++] : from[left++];
    }
}

/* A merge sort from the bottom up: stable, which qsort is not, and a dump's order counts. */
int code_log_sort(struct code_log *log, struct findings *findings)
{
    if (sorted(log))
        return 0;
    size_t count = log->event_count;
    struct code_event *other = malloc(count * sizeof *other);
    if (!other)
        return failure(findings, "out of memory");
    struct code_event *from = log->events, *to = other;
    for (size_t half = 1; half < count; half *= 2) {
        for (size_t at = 0; at < count; at += 2 * half) {
            size_t run = count - at < 2 * half ? count - at : 2 * half;
            merge(to + at, from + at, run < half ? run : half, run);
        }
        struct code_event *swap = from;
        from = to;
        to = swap;
    }
    if (from != log->events)
        memcpy(log->events, from, count * sizeof *other);
    free(other);
    return 0;
}

void code_log_free(struct code_log *log)
{
    free(log->functions);
    free(log->events);
    free(log->moves);
    free(log->unloads);
    free(log->blobs);
    free(log->cies);
    free(log->fdes);
    *log = (struct code_log){0};
}
