/* See code_lines.h. */
#include "injector/log/lines/code_lines.h"

#include "injector/log/lines/line_entry.h"

/* The rows of a function's entries, cut to it. */
struct row_cut {
    uint64_t size;
    int64_t front_at;      /* the highest offset in front of the function, or INT64_MIN: there is no
                              entry there */
    struct line_row front; /* its row, as one of the function's first byte */
    bool has_start;        /* the function's first byte has a row of its own */
    bool goes_on;          /* there is an entry after the first byte, be it after the function */
};

static int take_row(struct line_table *table, struct row_cut *cut, struct line_row row,
                    int64_t offset)
{
    if (offset < 0 && offset >= cut->front_at) {
        cut->front_at = offset;
        cut->front = row;
    }
    cut->goes_on |= offset > 0;
    if (offset < 0 || (uint64_t)offset >= cut->size)
        return 0;
    cut->has_start |= offset == 0;
    row.offset = (uint32_t)offset;
    return line_table_add_row(table, &row);
}

/* A row holds up to the next one, so that the last in front of the function is the one of its start
 * if anything follows. */
static int take_front(struct line_table *table, const struct row_cut *cut)
{
    bool reaches = cut->front_at != INT64_MIN && cut->goes_on && cut->size;
    return reaches && !cut->has_start ? line_table_add_row(table, &cut->front) : 0;
}

static int take_entries(struct line_table *table, const struct code_lines *lines, uint64_t size)
{
    struct line_entries entries = line_entries_of(lines->entries, lines->big_endian);
    struct line_entry entry;
    struct line_text before = {NULL, 0}, file = {NULL, 0};
    struct row_cut cut = {.size = size, .front_at = INT64_MIN};
    entries.overwritten = lines->files;
    entries.low = lines->low;
    entries.high = lines->high;
    while (line_entry_next(&entries, &entry)) {
        if (entry.name.text != before.text) {
            before = file = entry.name;
            if (lines->files && line_name_is_overwritten(file))
                file = named_files_restore(lines->files, file, lines->name);
        }
        struct line_row row = {0, file.text ? entry.line : 0, entry.discrim, file};
        if (take_row(table, &cut, row, (int64_t)(entry.addr - lines->origin)))
            return -1;
    }
    return take_front(table, &cut);
}

/* Values that were checked when the record was read may have turned to zeros since
 * (interruption.h).  Then a call may be its own parent, and a span may name the first call when
 * there are no calls. */
static int take_inlines(struct line_table *table, const struct jit_inline_info *info, uint64_t size)
{
    for (uint32_t i = 0; i < info->nr_inline; i++) {
        struct jit_inline call;
        jit_inline_at(info, i, &call);
        bool direct = call.parent >= i; /* JIT_INLINE_NONE is */
        struct line_inline taken = {
            .parent = direct ? LINE_NOT_INLINED : (int32_t)call.parent,
            .depth = direct ? 0 : table->inlines[call.parent].depth + 1,
            .call_line = call.call_line,
            .call_column = call.call_column,
            .decl_line = call.decl_line,
            .name = line_text_of(call.name),
            .call_file = line_text_of(call.call_file),
            .decl_file = line_text_of(call.decl_file),
        };
        if (line_table_add_inline(table, &taken))
            return -1;
    }
    for (uint32_t i = 0; i < info->nr_span; i++) {
        struct jit_inline_span span;
        jit_inline_span_at(info, i, &span);
        bool none = span.inline_index >= info->nr_inline;
        struct line_span taken = {span.code_offset,
                                  none ? LINE_NOT_INLINED : (int32_t)span.inline_index};
        if (span.code_offset < size && line_table_add_span(table, &taken))
            return -1;
    }
    return 0;
}

/* Each row of inlined code is of the file of its function.  "<unknown>": of none, as V8 has it.
 * Its spans are in order already. */
static void take_files_of_calls(struct line_table *table)
{
    for (size_t i = 0; i < table->row_count; i++) {
        struct line_row *row = &table->rows[i];
        const int32_t call = line_spans_call_at(table->spans, table->span_count, row->offset);
        if (call == LINE_NOT_INLINED)
            continue;
        const struct line_text file = table->inlines[call].decl_file;
        row->file = file.bytes ? file : line_text_of("<unknown>");
    }
}

static void translate(const struct line_translation *translation, struct line_table *table)
{
    for (size_t i = 0; i < table->row_count; i++)
        translation->row(translation->of, &table->rows[i]);
    for (size_t i = 0; i < table->inline_count; i++)
        translation->call(translation->of, &table->inlines[i]);
}

int code_lines_decode(const struct code_lines *lines, uint64_t size, struct line_table *table)
{
    line_table_empty(table);
    if ((lines->entries && take_entries(table, lines, size)) ||
        (lines->inlines && take_inlines(table, lines->inlines, size)))
        return -1;
    if (lines->files_of_calls)
        take_files_of_calls(table);
    if (lines->translation)
        translate(lines->translation, table);
    return line_table_close(table);
}
