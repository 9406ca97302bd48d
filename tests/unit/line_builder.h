/* Records of source lines and inlined calls, put into a dump that is being built. */
#ifndef PERFJIT_TEST_LINE_BUILDER_H
#define PERFJIT_TEST_LINE_BUILDER_H

#include "tests/unit/dump_builder.h"

struct built_row {
    uint64_t addr;
    uint32_t line, column;
    const char *file;
};

struct built_inline {
    uint32_t parent; /* or JIT_INLINE_NONE */
    const char *name, *call_file;
    uint32_t call_line, call_column;
    const char *decl_file;
    uint32_t decl_line;
};

struct built_span {
    uint32_t offset, inline_index;
};

static inline void dump_lines(struct dump_builder *dump, uint64_t time, uint64_t code_addr,
                              const struct built_row *rows, size_t count)
{
    size_t start = dump_begin_record(dump, JIT_CODE_DEBUG_INFO, time);
    sink_u64(&dump->sink, code_addr);
    sink_u64(&dump->sink, count);
    for (size_t i = 0; i < count; i++) {
        sink_u64(&dump->sink, rows[i].addr);
        sink_u32(&dump->sink, rows[i].line);
        sink_u32(&dump->sink, rows[i].column);
        sink_cstr(&dump->sink, rows[i].file);
    }
    dump_end_record(dump, start);
}

/* One row. */
static inline void dump_line(struct dump_builder *dump, uint64_t time, uint64_t addr, uint32_t line,
                             const char *file)
{
    const struct built_row row = {addr, line, 0, file};
    dump_lines(dump, time, addr, &row, 1);
}

static inline uint32_t dump_string(struct byte_sink *strings, const char *text)
{
    uint32_t at = (uint32_t)strings->size;
    if (!text)
        return JIT_INLINE_NONE;
    sink_cstr(strings, text);
    return at;
}

static inline void dump_inlines(struct dump_builder *dump, uint64_t time, uint64_t code_addr,
                                const struct built_inline *inlines, size_t inline_count,
                                const struct built_span *spans, size_t span_count)
{
    static uint8_t bytes[1 << 15];
    struct byte_sink strings = byte_sink_over(bytes, sizeof bytes);
    size_t start = dump_begin_record(dump, JIT_CODE_INLINE_INFO, time);
    sink_u64(&dump->sink, code_addr);
    sink_u32(&dump->sink, (uint32_t)inline_count);
    sink_u32(&dump->sink, (uint32_t)span_count);
    size_t strings_bytes_at = dump->sink.size;
    sink_u64(&dump->sink, 0);
    for (size_t i = 0; i < inline_count; i++) {
        sink_u32(&dump->sink, inlines[i].parent);
        sink_u32(&dump->sink, dump_string(&strings, inlines[i].call_file));
        sink_u32(&dump->sink, inlines[i].call_line);
        sink_u32(&dump->sink, inlines[i].call_column);
        sink_u32(&dump->sink, dump_string(&strings, inlines[i].name));
        sink_u32(&dump->sink, dump_string(&strings, inlines[i].decl_file));
        sink_u32(&dump->sink, inlines[i].decl_line);
    }
    for (size_t i = 0; i < span_count; i++) {
        sink_u32(&dump->sink, spans[i].offset);
        sink_u32(&dump->sink, spans[i].inline_index);
    }
    assert_false(strings.overflow);
    sink_bytes(&dump->sink, bytes, strings.size);
    dump_end_record(dump, start);
    struct byte_sink patch = byte_sink_over(dump->bytes + strings_bytes_at, 4);
    patch.big_endian = dump->sink.big_endian;
    sink_u32(&patch, (uint32_t)strings.size);
}

#endif
