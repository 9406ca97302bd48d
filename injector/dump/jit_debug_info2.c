/* See jit_debug_info2.h. */
#include "injector/dump/jit_debug_info2.h"

enum { CODE_OFFSET_BYTES = 8, SOURCE_POSITION_BYTES = 28 };

/* Number INDEX of COUNT elements. */
static struct byte_cursor element(const uint8_t *elements, uint32_t count, uint32_t index,
                                  size_t element_bytes, bool big_endian)
{
    struct byte_cursor cursor = byte_cursor_over(elements, count * element_bytes, big_endian);
    cursor_skip(&cursor, index * element_bytes);
    return cursor;
}

struct jit_source_position jit_source_position_at(const struct jit_debug_info2 *info,
                                                  uint32_t index)
{
    struct byte_cursor cursor = element(info->source_positions, info->source_position_count, index,
                                        SOURCE_POSITION_BYTES, info->big_endian);
    struct jit_source_position position;
    position.caller = cursor_u32(&cursor);
    position.function_name = cursor_u32(&cursor);
    position.file = cursor_u32(&cursor);
    position.start_line = cursor_u32(&cursor);
    position.start_column = cursor_u32(&cursor);
    position.line = cursor_u32(&cursor);
    position.column = cursor_u32(&cursor);
    return position;
}

void jit_code_offset_at(const struct jit_debug_info2 *info, uint32_t index, uint32_t *code_offset,
                        uint32_t *source_position)
{
    struct byte_cursor cursor = element(info->code_offsets, info->code_offset_count, index,
                                        CODE_OFFSET_BYTES, info->big_endian);
    *code_offset = cursor_u32(&cursor);
    *source_position = cursor_u32(&cursor);
}

static const char *check_indices(const struct jit_debug_info2 *info)
{
    for (uint32_t i = 0; i < info->source_position_count; i++) {
        struct jit_source_position position = jit_source_position_at(info, i);
        if (position.caller != JIT_POSITION_NONE && position.caller >= info->source_position_count)
            return "DEBUG_INFO2 names a caller that it does not have";
        if (position.function_name >= info->string_count ||
            (position.file != JIT_POSITION_NONE && position.file >= info->string_count))
            return "DEBUG_INFO2 names a string that it does not have";
    }
    for (uint32_t i = 0; i < info->code_offset_count; i++) {
        uint32_t code_offset, source_position;
        jit_code_offset_at(info, i, &code_offset, &source_position);
        if (source_position != JIT_POSITION_NONE && source_position >= info->source_position_count)
            return "DEBUG_INFO2 names a source position that it does not have";
    }
    return NULL;
}

static const char *check_strings(const struct jit_debug_info2 *info)
{
    struct byte_cursor cursor = byte_cursor_over(info->strings, info->strings_bytes, false);
    for (uint32_t i = 0; i < info->string_count && !cursor.failed; i++)
        (void)cursor_cstr(&cursor);
    return cursor.failed ? "DEBUG_INFO2 has a string without end" : NULL;
}

const char *jit_debug_info2_read(struct byte_cursor *cursor, struct jit_debug_info2 *info)
{
    info->big_endian = cursor->big_endian;
    info->code_addr = cursor_u64(cursor);
    uint64_t offsets = cursor_u64(cursor), positions = cursor_u64(cursor);
    uint64_t strings = cursor_u64(cursor), left = cursor_left(cursor);
    if (cursor->failed)
        return "DEBUG_INFO2 is shorter than its fixed part";
    if (offsets > left / CODE_OFFSET_BYTES || positions > left / SOURCE_POSITION_BYTES ||
        strings > left ||
        offsets * CODE_OFFSET_BYTES + positions * SOURCE_POSITION_BYTES + strings > left)
        return "DEBUG_INFO2 announces more than it can hold";
    info->code_offset_count = (uint32_t)offsets;
    info->source_position_count = (uint32_t)positions;
    info->string_count = (uint32_t)strings;
    info->code_offsets = cursor_bytes(cursor, (size_t)offsets * CODE_OFFSET_BYTES);
    info->source_positions = cursor_bytes(cursor, (size_t)positions * SOURCE_POSITION_BYTES);
    info->strings_bytes = cursor_left(cursor);
    info->strings = (const char *)cursor_bytes(cursor, info->strings_bytes);
    return NULL;
}

const char *jit_debug_info2_check(const struct jit_debug_info2 *info)
{
    const char *broken = check_strings(info);
    return broken ? broken : check_indices(info);
}
