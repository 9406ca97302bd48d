/* See line_assignment.h. */
#include "injector/log/code/line_assignment.h"

#include "injector/arrays/bisect.h"
#include "injector/log/lines/line_bias.h"
#include "injector/log/lines/line_entry.h"

#include <inttypes.h>
#include <stdlib.h>

/* A load of the dump, by address and then by its place in the dump. */
struct loaded {
    uint64_t addr;
    size_t function;
};

struct assigner {
    struct code_log *log;
    const struct jit_dump *dump;
    struct findings *findings;
    struct line_block *block;
    struct loaded *loads;
    size_t load_count;
    bool loads_first; /* the dump has a function's load in front of the records about it */
    struct line_bias bias;
    struct line_table scratch;
};

static void report_at(const struct assigner *assigner, const struct line_record *kept,
                      enum finding_kind kind, const char *text)
{
    report_finding(assigner->findings, kind, "%s: record %" PRIu64 " at 0x%" PRIx64 ": %s",
                   assigner->dump->path, kept->record.number, kept->record.offset, text);
}

static uint64_t code_addr_of(const struct jit_record *record)
{
    return record->id == JIT_CODE_DEBUG_INFO ? record->debug_info.code_addr
                                             : record->inline_info.code_addr;
}

/* ---- Which load a record is about ---- */

static int compare_loaded(const void *left, const void *right)
{
    const struct loaded *a = left, *b = right;
    if (a->addr != b->addr)
        return a->addr < b->addr ? -1 : 1;
    return a->function < b->function ? -1 : a->function > b->function;
}

static int collect_loads(struct assigner *assigner, size_t first_function)
{
    const struct code_log *log = assigner->log;
    size_t count = log->function_count - first_function;
    assigner->loads = malloc((count + 1) * sizeof *assigner->loads);
    if (!assigner->loads)
        return -1;
    for (size_t i = first_function; i < log->function_count; i++)
        if (log->functions[i].name) /* else it is where another one moves to */
            assigner->loads[assigner->load_count++] = (struct loaded){log->functions[i].addr, i};
    if (assigner->load_count)
        qsort(assigner->loads, assigner->load_count, sizeof *assigner->loads, compare_loaded);
    return 0;
}

/* The next load of the record's address, and the last one before it. */
struct candidates {
    size_t next, before;
};

static struct candidates find_candidates(const struct assigner *assigner,
                                         const struct line_record *kept)
{
    const struct loaded wanted = {code_addr_of(&kept->record), kept->next_function};
    struct candidates found = {NO_FUNCTION, NO_FUNCTION};
    size_t first;
    array_bisect(first, assigner->load_count, compare_loaded(&assigner->loads[first], &wanted) < 0);
    if (first < assigner->load_count && assigner->loads[first].addr == wanted.addr)
        found.next = assigner->loads[first].function;
    if (first > 0 && assigner->loads[first - 1].addr == wanted.addr)
        found.before = assigner->loads[first - 1].function;
    return found;
}

/* Whether the records of this dump stand after their loads: those with a load of their address on
 * one side only decide. */
static bool has_loads_first(const struct assigner *assigner)
{
    size_t next = 0, before = 0;
    for (size_t i = 0; i < assigner->block->records.count; i++) {
        struct candidates found = find_candidates(assigner, &assigner->block->records.items[i]);
        next += found.next != NO_FUNCTION && found.before == NO_FUNCTION;
        before += found.next == NO_FUNCTION && found.before != NO_FUNCTION;
    }
    return before > next;
}

static bool entries_lie_in(const struct assigner *assigner, const struct jit_debug_info *info,
                           const struct jit_function *function)
{
    struct line_entries entries = line_entries_of(info, assigner->dump->big_endian);
    struct line_entry entry;
    while (line_entry_next(&entries, &entry))
        if (entry.addr < function->addr || entry.addr - function->addr > function->size + LINE_BIAS)
            return false;
    return !entries.cursor.failed;
}

/* The load that perf would take, if nothing was ever loaded at the address that the record
 * names. */
static size_t find_by_order(const struct assigner *assigner, const struct line_record *kept)
{
    const struct code_log *log = assigner->log;
    size_t next = kept->next_function;
    while (next < log->function_count && !log->functions[next].name)
        next++;
    if (kept->record.id != JIT_CODE_DEBUG_INFO || next == log->function_count)
        return NO_FUNCTION;
    return entries_lie_in(assigner, &kept->record.debug_info, &log->functions[next]) ? next
                                                                                     : NO_FUNCTION;
}

static size_t find_function(const struct assigner *assigner, const struct line_record *kept)
{
    struct candidates found = find_candidates(assigner, kept);
    size_t first = assigner->loads_first ? found.before : found.next;
    size_t second = assigner->loads_first ? found.next : found.before;
    if (first != NO_FUNCTION)
        return first;
    return second != NO_FUNCTION ? second : find_by_order(assigner, kept);
}

/* ---- What is wrong with it ---- */

/* A summary of a function's entries, read one way or the other. */
struct reading {
    const char *broken; /* the error, or NULL */
    struct line_extent extent;
    bool goes_on; /* something stands after the last entry */
};

static bool is_padding(struct byte_cursor cursor)
{
    size_t left = cursor_left(&cursor);
    const uint8_t *rest = cursor_bytes(&cursor, left);
    return left == 0 || (rest[0] == 0 && memcmp(rest, rest + 1, left - 1) == 0);
}

static struct reading read_entries(struct line_entries entries, const struct jit_function *function)
{
    struct reading reading = {.extent = line_extent_of_nothing()};
    struct line_entry entry;
    while (line_entry_next(&entries, &entry))
        line_extent_add(&reading.extent, (int64_t)(entry.addr - function->addr),
                        entry.line != 0 && entry.name.text);
    if (entries.cursor.failed)
        reading.broken = "DEBUG_INFO ends before its last entry";
    else
        reading.goes_on = !is_padding(entries.cursor);
    return reading;
}

static bool lies_in(const struct line_extent *extent, const struct jit_function *function)
{
    return extent->lowest >= 0 && extent->highest <= (int64_t)function->size + LINE_BIAS;
}

static struct line_entries overwritten_entries(const struct jit_debug_info *info, bool big_endian,
                                               const struct jit_function *function)
{
    struct line_entries entries = line_entries_of(info, big_endian);
    entries.overwritten = true;
    entries.low = function->addr;
    entries.high = function->addr + function->size + LINE_BIAS + 1;
    return entries;
}

/* Take the record as it stands if that makes sense, else as one whose names were overwritten if
 * that does. */
static struct reading read_either_way(const struct assigner *assigner,
                                      const struct jit_debug_info *info,
                                      const struct jit_function *function, bool *overwritten)
{
    bool big_endian = assigner->dump->big_endian;
    struct reading plain = read_entries(line_entries_of(info, big_endian), function);
    *overwritten = false;
    if (!plain.broken && !plain.goes_on && lies_in(&plain.extent, function))
        return plain;
    struct line_entries entries = overwritten_entries(info, big_endian, function);
    struct reading other = read_entries(entries, function);
    *overwritten = !other.broken && lies_in(&other.extent, function);
    return *overwritten ? other : plain;
}

int line_inlines_check(struct line_table *scratch, const struct jit_inline_info *info,
                       uint64_t size, const char **broken)
{
    uint32_t *depths = line_table_scratch(scratch, info->nr_inline * sizeof *depths + 1);
    struct jit_inline_span last;
    if (!depths)
        return -1;
    if (info->nr_span > 0) {
        jit_inline_span_at(info, info->nr_span - 1, &last);
        if (last.code_offset >= size)
            *broken = "INLINE_INFO has a span past the end of its function";
    }
    for (uint32_t i = 0; i < info->nr_inline; i++) {
        struct jit_inline call;
        jit_inline_at(info, i, &call);
        depths[i] = call.parent == JIT_INLINE_NONE ? 0 : depths[call.parent] + 1;
        if (depths[i] >= LINE_MAX_DEPTH)
            *broken = "INLINE_INFO has more than 256 calls inlined into each other";
    }
    return 0;
}

/* ---- Giving ---- */

static struct code_lines *lines_of(struct assigner *assigner, size_t function)
{
    struct jit_function *functions = assigner->log->functions;
    if (!functions[function].lines) {
        struct code_lines *lines = &assigner->block->lines[assigner->block->count++];
        *lines = (struct code_lines){.name = functions[function].name,
                                     .origin = functions[function].addr,
                                     .big_endian = assigner->dump->big_endian};
        functions[function].lines = lines;
    }
    /* The functions only read it; until then it is the block's. */
    return &assigner->block->lines[functions[function].lines - assigner->block->lines];
}

static int give_entries(struct assigner *assigner, const struct line_record *kept, size_t function)
{
    const struct jit_debug_info *info = &kept->record.debug_info;
    bool overwritten;
    struct reading reading =
        read_either_way(assigner, info, &assigner->log->functions[function], &overwritten);
    if (reading.broken) {
        report_at(assigner, kept, FINDING_LINES_BROKEN, reading.broken);
        return 0;
    }
    line_bias_add(&assigner->bias, &reading.extent, assigner->log->functions[function].size);
    struct code_lines *lines = lines_of(assigner, function);
    if (lines->entries)
        report_at(assigner, kept, FINDING_LINES_UNMATCHED, "another one of the same load follows");
    lines->entries = info;
    lines->extent = reading.extent;
    lines->files = overwritten ? &assigner->block->files : NULL;
    lines->low = assigner->log->functions[function].addr;
    lines->high = lines->low + assigner->log->functions[function].size + LINE_BIAS + 1;
    if (overwritten)
        report_quirk(assigner->findings, QUIRK_FILES_OVERWRITTEN,
                     "%s: record %" PRIu64 " at 0x%" PRIx64 ": %s", assigner->dump->path,
                     kept->record.number, kept->record.offset, lines->name);
    return 0;
}

static int give_inlines(struct assigner *assigner, const struct line_record *kept, size_t function)
{
    uint64_t size = assigner->log->functions[function].size;
    const char *broken = NULL;
    if (line_inlines_check(&assigner->scratch, &kept->record.inline_info, size, &broken))
        return -1;
    if (broken) {
        report_at(assigner, kept, FINDING_INLINES_BROKEN, broken);
        return 0;
    }
    struct code_lines *lines = lines_of(assigner, function);
    if (lines->inlines)
        report_at(assigner, kept, FINDING_LINES_UNMATCHED, "another one of the same load follows");
    lines->inlines = &kept->record.inline_info;
    return 0;
}

static int give_record(struct assigner *assigner, const struct line_record *kept)
{
    size_t function = find_function(assigner, kept);
    if (function == NO_FUNCTION) {
        report_at(assigner, kept, FINDING_LINES_UNMATCHED, "no load has its address");
        return 0;
    }
    return kept->record.id == JIT_CODE_DEBUG_INFO ? give_entries(assigner, kept, function)
                                                  : give_inlines(assigner, kept, function);
}

/* ---- What shows only in the whole ---- */

static void repair_bias(struct assigner *assigner)
{
    uint64_t bias = line_bias_of(&assigner->bias);
    for (size_t i = 0; bias && i < assigner->block->count; i++) {
        struct code_lines *lines = &assigner->block->lines[i];
        if (!lines->entries)
            continue;
        lines->origin += bias;
        report_quirk(assigner->findings, QUIRK_LINES_BIASED, "%s: %s", assigner->dump->path,
                     lines->name);
    }
}

/* Whether lines of FUNCTION stand outside of it, in front or behind.  Entries at its end say where
 * it ends, and lines 0 that there are none. */
struct line_overhang {
    bool in_front, past_end;
    bool all; /* none of its instructions has a line because of that */
};

static struct line_overhang overhang_of(const struct jit_function *function)
{
    const struct code_lines *lines = function->lines;
    struct line_overhang over = {false, false, false};
    if (!lines || !lines->entries)
        return over;
    int64_t bias = (int64_t)(lines->origin - function->addr);
    int64_t end = (int64_t)function->size + bias;
    const struct line_extent *extent = &lines->extent;
    over.in_front = extent->lowest_line < bias;
    over.past_end = extent->highest_line > end;
    over.all = over.in_front ? extent->highest_line < bias && extent->highest <= bias
                             : over.past_end && extent->lowest_line >= end;
    return over;
}

/* Whether it is this producer's habit to write lines after the ends of functions. */
static bool writes_past_ends(const struct assigner *assigner)
{
    size_t past_end = 0;
    for (size_t i = 0; i < assigner->load_count; i++)
        past_end += overhang_of(&assigner->log->functions[assigner->loads[i].function]).past_end;
    return past_end >= 4 && past_end * 4 >= assigner->bias.functions * 3;
}

/* Lines in front belong to the function's start.  Lines past the end that are there by mistake are
 * lost, and rows of the function are missing. */
static void report_outside(const struct assigner *assigner)
{
    bool habit = writes_past_ends(assigner);
    for (size_t i = 0; i < assigner->load_count; i++) {
        const struct jit_function *function =
            &assigner->log->functions[assigner->loads[i].function];
        struct line_overhang over = overhang_of(function);
        if (over.all || (over.past_end && !habit))
            report_finding(assigner->findings, FINDING_LINES_OUTSIDE, "%s: %s",
                           assigner->dump->path, function->name);
        else if (over.in_front || over.past_end)
            report_quirk(assigner->findings, QUIRK_LINES_OUTSIDE, "%s: %s", assigner->dump->path,
                         function->name);
    }
}

static int collect_files(struct assigner *assigner)
{
    struct named_files *files = &assigner->block->files;
    bool needed = assigner->findings->repaired[QUIRK_FILES_OVERWRITTEN] > 0;
    for (size_t i = 0; needed && i < assigner->load_count; i++)
        if (named_files_add(files, assigner->log->functions[assigner->loads[i].function].name))
            return -1;
    named_files_close(files);
    return 0;
}

static int assign(struct assigner *assigner, size_t first_function)
{
    if (collect_loads(assigner, first_function))
        return -1;
    assigner->loads_first = has_loads_first(assigner);
    for (size_t i = 0; i < assigner->block->records.count; i++)
        if (give_record(assigner, &assigner->block->records.items[i]))
            return -1;
    repair_bias(assigner);
    report_outside(assigner);
    return collect_files(assigner);
}

static struct line_block *add_block(struct code_log *log, struct line_records *records)
{
    struct line_block *block = calloc(1, sizeof *block);
    struct code_lines *lines = calloc(records->count, sizeof *lines);
    if (!block || !lines) {
        free(block);
        free(lines);
        return NULL;
    }
    *block = (struct line_block){.next = log->line_blocks, .records = *records, .lines = lines};
    *records = (struct line_records){0};
    log->line_blocks = block;
    return block;
}

int line_records_assign(struct code_log *log, struct line_records *records,
                        const struct jit_dump *dump, size_t first_function,
                        struct findings *findings)
{
    struct assigner assigner = {.log = log, .dump = dump, .findings = findings};
    if (records->count == 0)
        return 0;
    assigner.block = add_block(log, records);
    int result = assigner.block ? assign(&assigner, first_function) : -1;
    free(assigner.loads);
    line_table_free(&assigner.scratch);
    return result;
}
