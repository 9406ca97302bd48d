/* See jit_interpreted.h. */
#include "injector/log/jitdump/jit_interpreted.h"

#include "jitdump/format/jitdump_format.h"

/* More than any function has, and so few that a million of them have addresses.  A frame is not
 * larger than this, either. */
enum { POSITIONS_MOST = 1 << 20, OFFSET_MOST = 1 << 16, REGISTERS_MOST = 64 };

static bool is_offset(int32_t offset)
{
    return offset > -OFFSET_MOST && offset < OFFSET_MOST;
}

const char *jit_interpreter_read(struct byte_cursor *cursor, struct jit_interpreter *interpreter)
{
    interpreter->code_addr = cursor_u64(cursor);
    interpreter->code_size = cursor_u64(cursor);
    interpreter->frame_register = cursor_u32(cursor);
    interpreter->function_offset = (int32_t)cursor_u32(cursor);
    interpreter->position_offset = (int32_t)cursor_u32(cursor);
    interpreter->position_register = cursor_u32(cursor);
    if (cursor->failed || cursor_left(cursor))
        return "INTERPRETER_FRAME is not as long as it must be";
    if (interpreter->code_size > UINT64_MAX - interpreter->code_addr)
        return "INTERPRETER_FRAME at addresses where no process can have code";
    if (interpreter->frame_register >= REGISTERS_MOST ||
        (interpreter->position_register >= REGISTERS_MOST &&
         interpreter->position_register != JIT_REGISTER_NONE))
        return "INTERPRETER_FRAME names a register that no machine has";
    if (!is_offset(interpreter->function_offset) || !is_offset(interpreter->position_offset))
        return "INTERPRETER_FRAME has an offset that is outside of any frame";
    return NULL;
}

/* The next text, and its BYTES; "" if it has no end. */
static const char *read_text(struct byte_cursor *cursor, uint32_t *bytes)
{
    const size_t left = cursor_left(cursor);
    const char *text = cursor_cstr(cursor);
    *bytes = text ? (uint32_t)(left - cursor_left(cursor) - 1) : 0;
    return text ? text : "";
}

const char *jit_interpreted_read(struct byte_cursor *cursor, struct jit_interpreted *function)
{
    function->function = cursor_u64(cursor);
    function->function_bytes = cursor_u32(cursor);
    function->position_bytes = cursor_u32(cursor);
    function->position = cursor_u64(cursor);
    function->nr_line = cursor_u32(cursor);
    function->lines_bytes = cursor_u32(cursor);
    if (cursor->failed)
        return "INTERPRETED_FUNCTION is shorter than its fixed part";
    function->name = read_text(cursor, &function->name_bytes);
    function->file = read_text(cursor, &function->file_bytes);
    if (cursor->failed)
        return "INTERPRETED_FUNCTION has a name without end";
    if (function->lines_bytes != cursor_left(cursor))
        return "INTERPRETED_FUNCTION has not as many lines as it says";
    function->lines = cursor_bytes(cursor, function->lines_bytes);
    if (function->position_bytes > POSITIONS_MOST)
        return "INTERPRETED_FUNCTION with more instructions than any function has";
    if (function->function_bytes > UINT64_MAX - function->function ||
        function->position_bytes > UINT64_MAX - function->position)
        return "INTERPRETED_FUNCTION at addresses that no process can have";
    return NULL;
}

struct byte_cursor jit_interpreted_rows(const struct jit_interpreted *function)
{
    return byte_cursor_over(function->lines, function->lines_bytes, false);
}

bool jit_position_next(struct byte_cursor *rows, const struct jit_interpreted *function,
                       struct jit_position *row)
{
    const uint64_t step = cursor_uleb(rows);
    const int64_t lines = cursor_sleb(rows);
    if (rows->failed || step >= function->position_bytes - row->offset || lines > UINT32_MAX ||
        lines < -(int64_t)UINT32_MAX)
        return false;
    const int64_t line = row->line + lines;
    *row = (struct jit_position){row->offset + (uint32_t)step, (uint32_t)line};
    return line >= 0 && line <= UINT32_MAX;
}

const char *jit_interpreted_check(const struct jit_interpreted *function)
{
    struct byte_cursor rows = jit_interpreted_rows(function);
    struct jit_position row = {0, 0};
    for (uint32_t i = 0; i < function->nr_line; i++)
        if (!jit_position_next(&rows, function, &row))
            return "INTERPRETED_FUNCTION has a line outside of it";
    return cursor_left(&rows) ? "INTERPRETED_FUNCTION has more lines than it says" : NULL;
}
