/* See jit_inline.h. */
#include "injector/log/jitdump/jit_inline.h"

#include "jitdump/format/jitdump_format.h"

static struct byte_cursor element(const struct jit_inline_info *info, const uint8_t *elements,
                                  uint32_t index, size_t element_bytes)
{
    struct byte_cursor cursor =
        byte_cursor_over(elements, (index + (size_t)1) * element_bytes, info->big_endian);
    cursor_skip(&cursor, index * element_bytes);
    return cursor;
}

/* Checked again at each look: the dump's writer may have written something else in its place. */
static const char *string_at(const struct jit_inline_info *info, uint32_t offset)
{
    return offset < info->strings_bytes ? info->strings + offset : NULL;
}

void jit_inline_at(const struct jit_inline_info *info, uint32_t index, struct jit_inline *call)
{
    struct byte_cursor cursor = element(info, info->inlines, index, JR_INLINE_BYTES);
    call->parent = cursor_u32(&cursor);
    call->call_file = string_at(info, cursor_u32(&cursor));
    call->call_line = cursor_u32(&cursor);
    call->call_column = cursor_u32(&cursor);
    call->name = string_at(info, cursor_u32(&cursor));
    call->decl_file = string_at(info, cursor_u32(&cursor));
    call->decl_line = cursor_u32(&cursor);
}

void jit_inline_span_at(const struct jit_inline_info *info, uint32_t index,
                        struct jit_inline_span *span)
{
    struct byte_cursor cursor = element(info, info->spans, index, JR_INLINE_SPAN_BYTES);
    span->code_offset = cursor_u32(&cursor);
    span->inline_index = cursor_u32(&cursor);
}

static bool string_is_inside(const struct jit_inline_info *info, uint32_t offset)
{
    return offset == JIT_INLINE_NONE || offset < info->strings_bytes;
}

static const char *check_inline(const struct jit_inline_info *info, uint32_t index)
{
    struct byte_cursor cursor = element(info, info->inlines, index, JR_INLINE_BYTES);
    uint32_t parent = cursor_u32(&cursor);
    uint32_t call_file = cursor_u32(&cursor);
    cursor_skip(&cursor, 8); /* call_line, call_column */
    uint32_t name = cursor_u32(&cursor);
    uint32_t decl_file = cursor_u32(&cursor);
    if (parent != JIT_INLINE_NONE && parent >= index)
        return "INLINE_INFO has a call that comes before its parent";
    if (name == JIT_INLINE_NONE)
        return "INLINE_INFO has a call without a name";
    if (!string_is_inside(info, call_file) || !string_is_inside(info, name) ||
        !string_is_inside(info, decl_file))
        return "INLINE_INFO names a string past the end of its strings";
    return NULL;
}

static const char *check_spans(const struct jit_inline_info *info)
{
    struct jit_inline_span span, before = {0, 0};
    for (uint32_t i = 0; i < info->nr_span; i++) {
        jit_inline_span_at(info, i, &span);
        if (i > 0 && span.code_offset <= before.code_offset)
            return "INLINE_INFO has spans that do not ascend";
        if (span.inline_index != JIT_INLINE_NONE && span.inline_index >= info->nr_inline)
            return "INLINE_INFO has a span of a call that it does not have";
        before = span;
    }
    return NULL;
}

const char *jit_inline_info_read(struct byte_cursor *cursor, struct jit_inline_info *info)
{
    info->big_endian = cursor->big_endian;
    info->code_addr = cursor_u64(cursor);
    info->nr_inline = cursor_u32(cursor);
    info->nr_span = cursor_u32(cursor);
    info->strings_bytes = cursor_u32(cursor);
    cursor_skip(cursor, 4); /* pad1 */
    if (cursor->failed)
        return "INLINE_INFO is shorter than its fixed part";
    uint64_t inlines_bytes = (uint64_t)info->nr_inline * JR_INLINE_BYTES;
    uint64_t spans_bytes = (uint64_t)info->nr_span * JR_INLINE_SPAN_BYTES;
    if (inlines_bytes + spans_bytes + info->strings_bytes != cursor_left(cursor))
        return "INLINE_INFO is not as long as its counts say";
    info->inlines = cursor_bytes(cursor, (size_t)inlines_bytes);
    info->spans = cursor_bytes(cursor, (size_t)spans_bytes);
    info->strings = (const char *)cursor_bytes(cursor, info->strings_bytes);
    return NULL;
}

const char *jit_inline_info_check(const struct jit_inline_info *info)
{
    if (info->strings_bytes ? info->strings[info->strings_bytes - 1] != '\0' : info->nr_inline > 0)
        return "INLINE_INFO has a string without end";
    const char *broken = NULL;
    for (uint32_t i = 0; i < info->nr_inline && !broken; i++)
        broken = check_inline(info, i);
    return broken ? broken : check_spans(info);
}
