/* See interpreted_code.h. */
#include "injector/log/code/interpreted_code.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/log/clock/jit_clock.h"
#include "jitdump/format/byte_sink.h"
#include "jitdump/format/jitdump_format.h"

#include <string.h>

/* How long a runtime's agent may take until it tells of a function. */
#define LATE_NS UINT64_C(1000000000)

/* ---- Adding ---- */

int interpreted_code_add_interpreter(struct interpreted_code *code,
                                     const struct jit_interpreter *interpreter)
{
    if (array_reserve(code->interpreters, code->interpreter_count, code->interpreter_capacity))
        return -1;
    code->interpreters[code->interpreter_count++] = *interpreter;
    return 0;
}

int interpreted_code_add(struct interpreted_code *code, const struct jit_interpreted *record,
                         uint64_t time_ns, uint32_t dump)
{
    if (array_reserve(code->functions, code->count, code->capacity))
        return -1;
    code->functions[code->count] =
        (struct interpreted_function){*record, time_ns, code->count, dump, NOT_SHOWN};
    code->count++;
    return 0;
}

void interpreted_code_convert(struct interpreted_code *code, const struct jit_clock *clock)
{
    for (size_t i = 0; i < code->count; i++)
        code->functions[i].time_ns = jit_clock_to_perf(clock, code->functions[i].time_ns);
}

static int by_word(const void *left, const void *right)
{
    const struct interpreted_function *a = left, *b = right;
    if (a->record.function != b->record.function)
        return a->record.function < b->record.function ? -1 : 1;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

void interpreted_code_sort(struct interpreted_code *code)
{
    if (!array_in_order(code->functions, code->count, sizeof *code->functions, by_word))
        qsort(code->functions, code->count, sizeof *code->functions, by_word);
}

/* ---- Finding ---- */

const struct jit_interpreter *interpreted_code_interpreter(const struct interpreted_code *code,
                                                           uint64_t addr)
{
    for (size_t i = code->interpreter_count; i-- > 0;)
        if (addr - code->interpreters[i].code_addr < code->interpreters[i].code_size)
            return &code->interpreters[i];
    return NULL;
}

struct interpreted_function *interpreted_code_find(const struct interpreted_code *code,
                                                   uint64_t word, uint64_t time_ns)
{
    struct interpreted_function *functions = code->functions;
    size_t behind;
    array_bisect(
        behind, code->count,
        functions[behind].record.function < word ||
            (functions[behind].record.function == word && functions[behind].time_ns <= time_ns));
    if (behind && functions[behind - 1].record.function == word)
        return &functions[behind - 1];
    return behind < code->count && functions[behind].record.function == word ? &functions[behind]
                                                                             : NULL;
}

struct interpreted_function *interpreted_code_late(const struct interpreted_code *code,
                                                   struct interpreted_function *function,
                                                   uint64_t time_ns)
{
    struct interpreted_function *next = function + 1;
    return next < code->functions + code->count &&
                   next->record.function == function->record.function &&
                   (next->time_ns <= time_ns || next->time_ns - time_ns <= LATE_NS)
               ? next
               : NULL;
}

/* ---- Addresses ---- */

/* One for each instruction's byte, one behind it, for those who look a byte further, and the last
 * for what has no known position. */
uint64_t interpreted_room_bytes(const struct interpreted_function *function)
{
    return (uint64_t)function->record.position_bytes + 2;
}

uint64_t interpreted_offset(const struct interpreted_function *function, uint64_t position)
{
    const uint64_t offset = position - function->record.position;
    return offset < function->record.position_bytes ? offset
                                                    : function->record.position_bytes + UINT64_C(1);
}

/* ---- Lines ---- */

/* The rows as the entries of a record, the last of them for the address that has no line. */
static struct byte_sink make_entries(const struct jit_interpreted *record,
                                     struct line_extent *extent, uint32_t *count)
{
    const size_t bytes =
        ((size_t)record->nr_line + 1) * (JR_DEBUG_ENTRY_BYTES + (size_t)record->file_bytes + 1);
    struct byte_sink sink = byte_sink_over(malloc(bytes), bytes);
    struct byte_cursor rows = jit_interpreted_rows(record);
    struct jit_position row = {0, 0};
    *extent = line_extent_of_nothing();
    *count = 0;
    for (uint32_t i = 0; sink.data && i < record->nr_line && jit_position_next(&rows, record, &row);
         i++, ++*count) {
        jit_debug_entry_put(&sink, row.offset, row.line, record->file, record->file_bytes);
        line_extent_add(extent, row.offset, row.line);
    }
    if (!sink.data)
        return sink;
    jit_debug_entry_put(&sink, record->position_bytes + UINT64_C(1), 0, record->file,
                        record->file_bytes);
    line_extent_add(extent, record->position_bytes + INT64_C(1), false);
    ++*count;
    return sink;
}

int interpreted_code_lines(struct interpreted_code *code,
                           const struct interpreted_function *function,
                           const struct code_lines **lines)
{
    const struct jit_interpreted *record = &function->record;
    struct line_extent extent;
    uint32_t count;
    *lines = NULL;
    if (!record->nr_line || !record->file_bytes)
        return 0;
    struct interpreted_lines *made = malloc(sizeof *made);
    struct byte_sink sink = make_entries(record, &extent, &count);
    if (!made || !sink.data) {
        free(made);
        free(sink.data);
        return -1;
    }
    *made = (struct interpreted_lines){.next = code->lines,
                                       .entries = {.nr_entry = count,
                                                   .entries = sink.data,
                                                   .entries_bytes = sink.size,
                                                   .big_endian = sink.big_endian}};
    made->lines = (struct code_lines){.entries = &made->entries,
                                      .extent = extent,
                                      .name = record->name,
                                      .big_endian = sink.big_endian};
    code->lines = made;
    *lines = &made->lines;
    return 0;
}

void interpreted_code_free(struct interpreted_code *code)
{
    while (code->lines) {
        struct interpreted_lines *next = code->lines->next;
        free((void *)(uintptr_t)code->lines->entries.entries);
        free(code->lines);
        code->lines = next;
    }
    free(code->interpreters);
    free(code->functions);
    *code = (struct interpreted_code){0};
}
