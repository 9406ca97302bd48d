/* See log_reader.h. */
#include "injector/log/code/log_reader.h"

#include "injector/arrays/array.h"
#include "injector/arrays/number_sort.h"
#include "injector/log/code/line_assignment.h"
#include "injector/log/code/unwind_info.h"
#include "injector/text/plural.h"

#include <inttypes.h>
#include <string.h>

struct log_reader {
    struct code_log *log;
    const struct jit_dump *dump;
    const struct jit_clock *clock;
    struct findings *findings;
    uint32_t dump_index;
    bool with_lines;
    struct unwind_blobs blobs;
    struct line_records line_records;
    size_t dump_first_function;
    size_t first_function; /* of this dump; after a second header, of the records behind it */
    size_t ended;          /* functions before this one are to be ended by the next event */
    bool foreign;          /* a header said that the records behind it are not this dump's */
    bool closed;           /* there was a CLOSE */
    uint64_t last_time;
    struct jit_piece piece; /* that the next LOAD is; nr_piece 0: none */
    uint64_t piece_time;
    size_t first_index; /* function from which on a code_index should occur once */
    uint64_t max_index; /* of all loads from there on */
    bool index_fell;    /* a load's was not above all before it */
};

static void report_repaired(const struct log_reader *reader, const struct jit_record *record,
                            enum quirk quirk)
{
    report_quirk(reader->findings, quirk, "%s: record %" PRIu64 " at 0x%" PRIx64,
                 reader->dump->path, record->number, record->offset);
}

static int add_event(struct log_reader *reader, const struct jit_record *record,
                     enum code_event_kind kind, size_t index);

/* QUIRK_HEADER_AGAIN: all code logged before the header ends at the time of RECORD, the first event
 * after it.  (The header's own time may be another clock's.) */
static int end_earlier(struct log_reader *reader, const struct jit_record *record)
{
    struct code_log *log = reader->log;
    size_t end = reader->ended, first = reader->first_function;
    reader->ended = 0;
    reader->first_function = end;
    for (size_t i = first; i < end; i++) {
        const struct jit_function *function = &log->functions[i];
        if (array_reserve(log->unloads, log->unload_count, log->unload_capacity))
            return -1;
        log->unloads[log->unload_count++] =
            (struct code_unload){function->addr, function->size, function->code_index,
                                 function->dump, function->pid,  false};
        if (add_event(reader, record, CODE_EVENT_END, log->unload_count - 1))
            return -1;
    }
    return 0;
}

static int add_event(struct log_reader *reader, const struct jit_record *record,
                     enum code_event_kind kind, size_t index)
{
    if (reader->ended && end_earlier(reader, record))
        return -1;
    return code_log_add_event(reader->log, jit_clock_to_perf(reader->clock, record->timestamp),
                              kind, index);
}

static struct jit_function *add_function(struct log_reader *reader)
{
    return code_log_add_function(reader->log, reader->dump_index);
}

/* Give FUNCTION the name of RECORD as it is shown.  Returns 0, or -1 without memory. */
static int take_name(struct log_reader *reader, const struct jit_record *record,
                     struct jit_function *function)
{
    static const char unnamed[] = "[unnamed JIT code]";
    const struct jit_load *load = &record->load;
    const char *name = load->name;
    size_t bytes = load->name_bytes;
    bool usable =
        !(record->quirks & (quirk_bit(QUIRK_NAME_OPEN) | quirk_bit(QUIRK_NAME_UNPRINTABLE)));
    if (bytes == 0) {
        name = unnamed;
        bytes = sizeof unnamed - 1;
    }
    name = code_log_shown_name(reader->log, name, &bytes, usable);
    if (!name)
        return -1;
    jit_function_set_name(function, name, bytes);
    return 0;
}

/* Report the wrong fields of a LOAD.  None of it is used: the dump belongs to the process that
 * mapped it, and functions are distinguished by address and time. */
static void look_at_ids(struct log_reader *reader, const struct jit_record *record)
{
    enum { MAX_LINUX_TID = 1 << 22 };
    const struct jit_load *load = &record->load;
    if (load->pid != reader->dump->pid)
        report_repaired(reader, record, QUIRK_PID_DIFFERS);
    bool wide = record->quirks & quirk_bit(QUIRK_THREAD_ID_64); /* another system's */
    if (!wide && (load->tid == 0 || load->tid > MAX_LINUX_TID))
        report_repaired(reader, record, QUIRK_TID_IMPOSSIBLE);
    bool first = reader->log->function_count == reader->first_index + 1;
    reader->index_fell |= !first && load->code_index <= reader->max_index;
    if (first || load->code_index > reader->max_index)
        reader->max_index = load->code_index;
}

/* A LOAD that is not the one which the PIECE before it is about is a whole function. */
static void take_piece(struct log_reader *reader, const struct jit_record *record,
                       struct jit_function *function)
{
    const struct jit_piece *piece = &reader->piece;
    if (piece->nr_piece && piece->code_addr == function->addr &&
        piece->code_index + piece->number == function->code_index &&
        reader->piece_time == record->timestamp) {
        function->piece = piece->number + 1;
        reader->log->has_pieces = true;
    }
    reader->piece.nr_piece = 0;
}

/* RECORD lost code bytes only: to the next record, or to the end of the file. */
static void report_short_load(const struct log_reader *reader, const struct jit_record *record,
                              const char *name)
{
    bool cut = record->quirks & quirk_bit(QUIRK_DUMP_CUT);
    if (reader->log->stubs_unread)
        return;
    report_finding(reader->findings, cut ? FINDING_DUMP_TRUNCATED : FINDING_DUMP_TORN,
                   "%s: record %" PRIu64 " at 0x%" PRIx64 ": ends after %" PRIu64 " of its %" PRIu32
                   " bytes; its name, %s, is kept",
                   reader->dump->path, record->number, record->offset,
                   cut ? reader->dump->size - record->offset : record->extent, record->total_size,
                   name);
}

static int add_load(struct log_reader *reader, const struct jit_record *record)
{
    const struct jit_load *load = &record->load;
    struct jit_function *function = add_function(reader);
    if (!function || take_name(reader, record, function))
        return -1;
    function->addr = load->code_addr;
    function->size = load->code_size;
    function->code_index = load->code_index;
    function->pid = load->pid;
    function->code = load->code;
    take_piece(reader, record, function);
    if (record->quirks & quirk_bit(QUIRK_RECORD_TORN))
        report_short_load(reader, record, function->name);
    else if (!load->code)
        report_finding(reader->findings, FINDING_BYTES_ABSENT,
                       "%s: record %" PRIu64 " at 0x%" PRIx64 ": %s", reader->dump->path,
                       record->number, record->offset, function->name);
    look_at_ids(reader, record);
    return add_event(reader, record, CODE_EVENT_LOAD, reader->log->function_count - 1);
}

static int add_move(struct log_reader *reader, const struct jit_record *record)
{
    struct code_log *log = reader->log;
    const struct jit_move *move = &record->move;
    if (array_reserve(log->moves, log->move_count, log->move_capacity))
        return -1;
    struct jit_function *function = add_function(reader);
    if (!function)
        return -1;
    function->addr = move->new_code_addr;
    function->size = move->code_size;
    function->code_index = move->code_index;
    function->pid = move->pid;
    log->moves[log->move_count++] =
        (struct code_move){move->old_code_addr, (uint32_t)(log->function_count - 1)};
    return add_event(reader, record, CODE_EVENT_MOVE, log->move_count - 1);
}

static int add_unload(struct log_reader *reader, const struct jit_record *record)
{
    struct code_log *log = reader->log;
    const struct jit_unload *unload = &record->unload;
    if (array_reserve(log->unloads, log->unload_count, log->unload_capacity))
        return -1;
    log->unloads[log->unload_count++] =
        (struct code_unload){unload->code_addr,  unload->code_size, unload->code_index,
                             reader->dump_index, unload->pid,       false};
    return add_event(reader, record, CODE_EVENT_UNLOAD, log->unload_count - 1);
}

/* If several dumps have one, the latest begin counts. */
static void take_history(struct log_reader *reader, const struct jit_record *record)
{
    struct code_history *history = &reader->log->history;
    if (record->number > 1) { /* it stands in front, or behind a FILLER there */
        report_finding(reader->findings, FINDING_RECORD_BROKEN,
                       "%s: record %" PRIu64 " at 0x%" PRIx64 ": HISTORY after other records",
                       reader->dump->path, record->number, record->offset);
        return;
    }
    if (record->history.generation == 0)
        return;
    uint64_t begin_ns = jit_clock_to_perf(reader->clock, record->timestamp);
    history->begin_ns = begin_ns > history->begin_ns ? begin_ns : history->begin_ns;
    const uint64_t dropped = record->history.dropped;
    history->dropped += dropped;
    report_finding(reader->findings, FINDING_HISTORY_CUT,
                   "%s: %" PRIu64 " function%s logged before %" PRIu64 ".%09" PRIu64
                   " s and gone by then %s not in it",
                   reader->dump->path, dropped, plural(dropped), begin_ns / 1000000000,
                   begin_ns % 1000000000, is_or_are(dropped));
}

static int add_blob(struct log_reader *reader, const struct jit_record *record)
{
    struct unwind_blobs *blobs = &reader->blobs;
    if (array_reserve(blobs->items, blobs->count, blobs->capacity))
        return -1;
    reader->log->has_unwinding = true;
    blobs->items[blobs->count++] = (struct unwind_blob){
        record->unwinding_info, record->number, record->offset, reader->log->function_count};
    return 0;
}

/* QUIRK_INDEX_REUSED: count the loads of this part of the dump whose code_index an earlier one has,
 * too. */
static int look_at_indices(struct log_reader *reader)
{
    const struct code_log *log = reader->log;
    size_t first = reader->first_index, count = 0;
    reader->first_index = log->function_count;
    if (!reader->index_fell)
        return 0;
    reader->index_fell = false;
    uint64_t *indices = malloc((log->function_count - first + 1) * sizeof *indices);
    if (!indices)
        return -1;
    for (size_t i = first; i < log->function_count; i++)
        if (log->functions[i].name) /* else it is the target of a move */
            indices[count++] = log->functions[i].code_index;
    number_sort(indices, count, sizeof *indices);
    for (size_t i = 1; i < count; i++)
        if (indices[i] == indices[i - 1])
            report_quirk(reader->findings, QUIRK_INDEX_REUSED, "%s: code_index %" PRIu64,
                         reader->dump->path, indices[i]);
    free(indices);
    return 0;
}

/* A second header, QUIRK_HEADER_AGAIN, unless it is another's, QUIRK_HEADER_FOREIGN. */
static int take_header(struct log_reader *reader, const struct jit_record *record)
{
    const struct jit_dump *dump = reader->dump;
    const struct jit_header *header = &record->header;
    bool same_clock = !((header->flags ^ dump->flags) & JITDUMP_FLAG_ARCH_TIMESTAMP);
    reader->foreign =
        header->pid != dump->pid || header->big_endian != dump->big_endian || !same_clock;
    reader->closed = false;
    reader->last_time = 0;
    if (reader->foreign) {
        report_finding(reader->findings, FINDING_DUMP_FOREIGN,
                       "%s: record %" PRIu64 " at 0x%" PRIx64 ": a header of process %" PRIu32
                       " after one of process %" PRIu32 "%s",
                       dump->path, record->number, record->offset, header->pid, dump->pid,
                       !same_clock                              ? ", with another clock"
                       : header->big_endian != dump->big_endian ? ", of the other byte order"
                                                                : "");
        return 0;
    }
    report_repaired(reader, record, QUIRK_HEADER_AGAIN);
    if (reader->log->function_count > reader->first_function)
        reader->ended = reader->log->function_count;
    return look_at_indices(reader);
}

/* Report the quirks of RECORD: those that its reader noticed, and those of its place among the
 * others. */
static void look_at_quirks(struct log_reader *reader, const struct jit_record *record)
{
    bool timeless = !jit_record_has_time(record->id);
    for (int quirk = 0; record->quirks && quirk < QUIRKS; quirk++)
        if (record->quirks & quirk_bit((enum quirk)quirk) &&
            quirk_text((enum quirk)quirk)->finding == NOT_A_FINDING)
            report_repaired(reader, record, (enum quirk)quirk);
    if (!timeless && record->timestamp < reader->last_time)
        report_repaired(reader, record, QUIRK_TIME_BACKWARDS);
    if (!timeless)
        reader->last_time = record->timestamp;
    if (reader->closed && !timeless) {
        report_repaired(reader, record, QUIRK_AFTER_CLOSE);
        reader->closed = false;
    }
    reader->closed |= record->id == JIT_CODE_CLOSE;
}

static int add_sound_record(struct log_reader *reader, const struct jit_record *record)
{
    look_at_quirks(reader, record);
    switch (record->id) {
    case JIT_CODE_LOAD:
        return add_load(reader, record);
    case JIT_CODE_MOVE:
        return add_move(reader, record);
    case JIT_CODE_UNLOAD:
        return add_unload(reader, record);
    case JIT_CODE_HISTORY:
        take_history(reader, record);
        return 0;
    case JIT_CODE_UNWINDING_INFO:
        return add_blob(reader, record);
    case JIT_CODE_PIECE:
        reader->piece = record->piece;
        reader->piece_time = record->timestamp;
        return 0;
    case JIT_INTERPRETER_FRAME:
        return interpreted_code_add_interpreter(&reader->log->interpreted, &record->interpreter);
    case JIT_INTERPRETED_FUNCTION:
        return interpreted_code_add(&reader->log->interpreted, &record->interpreted,
                                    jit_clock_to_perf(reader->clock, record->timestamp),
                                    reader->dump_index);
    case JIT_CODE_DEBUG_INFO:
    case JIT_CODE_INLINE_INFO:
        return reader->with_lines
                   ? line_records_keep(&reader->line_records, record, reader->log->function_count)
                   : 0;
    default:
        if (!jit_record_name(record->id))
            report_finding(
                reader->findings, FINDING_RECORD_UNKNOWN,
                "%s: record %" PRIu64 " at 0x%" PRIx64 ": id %" PRIu32 ", %" PRIu32 " bytes",
                reader->dump->path, record->number, record->offset, record->id, record->total_size);
        return 0;
    }
}

static int add_record(struct log_reader *reader, const struct jit_record *record)
{
    if (record->id == JIT_HEADER)
        return take_header(reader, record);
    if (reader->foreign)
        return 0;
    if (!record->broken)
        return add_sound_record(reader, record);
    report_finding(reader->findings, FINDING_RECORD_BROKEN,
                   "%s: record %" PRIu64 " at 0x%" PRIx64 ": %s", reader->dump->path,
                   record->number, record->offset, record->broken);
    return 0;
}

static void report_end(const struct log_reader *reader, const struct jit_record *record,
                       enum jit_dump_end end)
{
    const struct jit_dump *dump = reader->dump;
    if (end == JIT_DUMP_CUT)
        report_finding(reader->findings, FINDING_DUMP_TRUNCATED,
                       "%s: record %" PRIu64 " at 0x%" PRIx64 ": %" PRIu32
                       " bytes long by its prefix, %" PRIu64 " are left",
                       dump->path, record->number, record->offset, record->total_size,
                       (uint64_t)dump->size - record->offset);
    else if (end == JIT_DUMP_TORN)
        report_finding(reader->findings, FINDING_DUMP_TORN,
                       "%s: record %" PRIu64 " at 0x%" PRIx64 ": %" PRIu64
                       " byte%s skipped, up to the next sound record at 0x%" PRIx64,
                       dump->path, record->number, record->offset, record->extent,
                       plural(record->extent), record->offset + record->extent);
    else if (end == JIT_DUMP_TWICE)
        report_quirk(reader->findings, QUIRK_PART_TWICE,
                     "%s: record %" PRIu64 " at 0x%" PRIx64 ": %" PRIu64 " byte%s", dump->path,
                     record->number, record->offset, record->extent, plural(record->extent));
}

/* Records in front of a record that was cut are of that record's function. */
static void drop_orphans(struct log_reader *reader)
{
    struct unwind_blobs *blobs = &reader->blobs;
    struct line_records *lines = &reader->line_records;
    size_t next = reader->log->function_count;
    while (blobs->count && blobs->items[blobs->count - 1].next_function == next)
        blobs->count--;
    while (lines->count && lines->items[lines->count - 1].next_function == next)
        lines->count--;
}

static void report_header_quirks(const struct log_reader *reader)
{
    const struct jit_dump *dump = reader->dump;
    for (int quirk = 0; dump->quirks && quirk < QUIRKS; quirk++)
        if (dump->quirks & quirk_bit((enum quirk)quirk))
            report_quirk(reader->findings, (enum quirk)quirk,
                         "%s: version %" PRIu32 ", flags 0x%" PRIx64 ", elf_mach %" PRIu32
                         ", records from %" PRIu32 " on",
                         dump->path, dump->version, dump->flags, dump->elf_mach,
                         dump->header_bytes);
}

static int take_end(struct log_reader *reader, const struct jit_record *record,
                    enum jit_dump_end end)
{
    if (end != JIT_DUMP_CUT)
        return 0;
    reader->log->cut = true;
    reader->log->stubs_unread = record->quirks & quirk_bit(QUIRK_STUBS_UNREAD);
    if (record->quirks & quirk_bit(QUIRK_DUMP_CUT) && !reader->foreign)
        return add_record(reader, record);
    report_end(reader, record, end);
    drop_orphans(reader);
    return 0;
}

enum {
    RECORDS_TO_ESTIMATE_BY = 4096,
    BYTES_TO_COME = 250, /* for each function in all, up to the output */
};

/* Reserve room for the contents of the rest of the dump, if it goes on as it began.  Some more is
 * reserved, since an estimate that is a little too small costs twice the memory. */
static void expect_rest(struct log_reader *reader, uint64_t offset)
{
    struct code_log *log = reader->log;
    size_t read = log->function_count - reader->first_index, before = log->function_count - read;
    uint64_t expected =
        (uint64_t)((double)read * 1.1 * (double)reader->dump->used_bytes / (double)offset);
    arrays_expect(expected * BYTES_TO_COME);
    log->functions = array_expect(log->functions, before + expected, &log->function_capacity,
                                  sizeof *log->functions);
    log->events = array_expect(log->events, log->event_count + expected, &log->event_capacity,
                               sizeof *log->events);
}

/* Returns 0, or -1 without memory. */
static int read_records(struct log_reader *reader)
{
    struct progress *progress = &reader->findings->progress;
    struct jit_dump_walk walk = jit_dump_begin(reader->dump);
    struct jit_record record;
    enum jit_dump_end end;
    progress_begin(progress, "reading", reader->dump->path, reader->dump->size);
    while (jit_dump_goes_on(end = jit_dump_next(&walk, &record))) {
        if (end != JIT_DUMP_MORE)
            report_end(reader, &record, end);
        else if (add_record(reader, &record))
            return -1;
        if (walk.reader.number == RECORDS_TO_ESTIMATE_BY)
            expect_rest(reader, walk.offset);
        progress_step(progress, record.id == JIT_CODE_LOAD, record.extent);
    }
    progress_end(progress);
    return take_end(reader, &record, end) ? -1 : look_at_indices(reader);
}

/* Give the unwind tables and lines to their functions, now that all are known. */
static int assign(struct log_reader *reader)
{
    return unwind_blobs_assign(reader->log, &reader->blobs, reader->dump, reader->findings) ||
           line_records_assign(reader->log, &reader->line_records, reader->dump,
                               reader->dump_first_function, reader->findings);
}

int code_log_read(struct code_log *log, const struct jit_dump *dump, uint32_t dump_index,
                  const struct jit_clock *clock, bool with_lines, struct findings *findings)
{
    struct log_reader reader = {.log = log,
                                .dump = dump,
                                .clock = clock,
                                .findings = findings,
                                .dump_index = dump_index,
                                .with_lines = with_lines,
                                .dump_first_function = log->function_count,
                                .first_function = log->function_count,
                                .first_index = log->function_count};
    report_header_quirks(&reader);
    int result = read_records(&reader) || assign(&reader);
    free(reader.blobs.items);
    free(reader.line_records.items);
    return result ? report_failure(findings, "out of memory") : 0;
}
