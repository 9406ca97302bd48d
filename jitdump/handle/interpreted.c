/* See jitdump/interpreted.h. */
#include "jitdump/interpreted.h"

#include "jitdump/format/jitdump_format.h"
#include "jitdump/handle/handle.h"

#include <string.h>

/* ---- Interpreters ---- */

static void put_interpreter(struct dump_room *room, uint64_t bytes, const void *what)
{
    const struct jitdump_interpreter *interpreter = what;
    struct byte_sink *sink = &room->sink;
    jd_room_begin_record(room, JIT_INTERPRETER_FRAME, bytes);
    sink_u64(sink, interpreter->code_addr);
    sink_u64(sink, interpreter->code_size);
    sink_u32(sink, interpreter->frame_register);
    sink_u32(sink, (uint32_t)interpreter->function_offset);
    sink_u32(sink, (uint32_t)interpreter->position_offset);
    sink_u32(sink, interpreter->position_register);
}

int jd_add_interpreter(struct jitdump *dump, const struct jitdump_interpreter *interpreter)
{
    return jd_handle_add_record(dump, JR_INTERPRETER_FRAME_BYTES, put_interpreter, interpreter);
}

/* ---- Functions ---- */

/* A function with the size of its rows. */
struct measured {
    const struct jitdump_interpreted *function;
    uint32_t lines_bytes;
};

/* Rows take ten bytes each at most. */
static void put_rows(struct byte_sink *sink, const struct jitdump_interpreted *function)
{
    struct jitdump_position before = {0, 0};
    for (size_t i = 0; i < function->row_count; i++) {
        const struct jitdump_position *row = &function->rows[i];
        sink_uleb(sink, row->offset - before.offset);
        sink_sleb(sink, (int64_t)row->line - before.line);
        before = *row;
    }
}

static uint32_t bytes_of_uleb(uint64_t value)
{
    uint32_t bytes = 1;
    while (value >>= 7)
        bytes++;
    return bytes;
}

static uint32_t bytes_of_sleb(int64_t value)
{
    return bytes_of_uleb((uint64_t)(value < 0 ? ~value : value) << 1);
}

static uint32_t rows_measure(const struct jitdump_interpreted *function)
{
    struct jitdump_position before = {0, 0};
    uint32_t bytes = 0;
    for (size_t i = 0; i < function->row_count; i++) {
        const struct jitdump_position *row = &function->rows[i];
        bytes += bytes_of_uleb(row->offset - before.offset) +
                 bytes_of_sleb((int64_t)row->line - before.line);
        before = *row;
    }
    return bytes;
}

static const char *file_of(const struct jitdump_interpreted *function)
{
    return function->file ? function->file : "";
}

static void put_function(struct dump_room *room, uint64_t bytes, const void *what)
{
    const struct measured *measured = what;
    const struct jitdump_interpreted *function = measured->function;
    struct byte_sink *sink = &room->sink;
    jd_room_begin_record(room, JIT_INTERPRETED_FUNCTION, bytes);
    sink_u64(sink, function->function);
    sink_u32(sink, function->function_bytes);
    sink_u32(sink, function->position_bytes);
    sink_u64(sink, function->position);
    sink_u32(sink, (uint32_t)function->row_count);
    sink_u32(sink, measured->lines_bytes);
    sink_cstr(sink, function->name);
    sink_cstr(sink, file_of(function));
    put_rows(sink, function);
}

/* Rows that do not ascend are left out: the record can't have them. */
static size_t rows_in_order(const struct jitdump_interpreted *function)
{
    size_t count = 0;
    while (count < function->row_count && count < UINT16_MAX &&
           function->rows[count].offset < function->position_bytes &&
           (count == 0 || function->rows[count].offset > function->rows[count - 1].offset))
        count++;
    return count;
}

int jd_add_interpreted(struct jitdump *dump, const struct jitdump_interpreted *function)
{
    struct jitdump_interpreted sound = *function;
    sound.row_count = rows_in_order(function);
    sound.function_bytes = function->function_bytes ? function->function_bytes : 1;
    const struct measured measured = {&sound, rows_measure(&sound)};
    const uint64_t bytes = JR_INTERPRETED_FUNCTION_BYTES + strlen(sound.name) + 1 +
                           strlen(file_of(&sound)) + 1 + measured.lines_bytes;
    return jd_handle_add_record(dump, bytes, put_function, &measured);
}
