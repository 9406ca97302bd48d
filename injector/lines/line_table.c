/* See line_table.h. */
#include "injector/lines/line_table.h"

#include "injector/arrays/array.h"
#include "injector/code/line_assignment.h"
#include "injector/lines/line_positions.h"

#include <stdlib.h>

void *line_table_scratch(struct line_table *table, size_t bytes)
{
    if (bytes > table->scratch_bytes) {
        free(table->scratch);
        table->scratch = malloc(bytes);
        table->scratch_bytes = table->scratch ? bytes : 0;
    }
    return table->scratch;
}

int line_table_add_row(struct line_table *table, const struct line_row *row)
{
    struct line_row *rows =
        array_room(table->rows, table->row_count, &table->row_capacity, sizeof *rows);
    if (!rows)
        return -1;
    table->rows = rows;
    rows[table->row_count++] = *row;
    return 0;
}

int line_table_add_inline(struct line_table *table, const struct line_inline *call)
{
    struct line_inline *inlines =
        array_room(table->inlines, table->inline_count, &table->inline_capacity, sizeof *inlines);
    if (!inlines)
        return -1;
    table->inlines = inlines;
    inlines[table->inline_count++] = *call;
    return 0;
}

int line_table_add_span(struct line_table *table, const struct line_span *span)
{
    struct line_span *spans =
        array_room(table->spans, table->span_count, &table->span_capacity, sizeof *spans);
    if (!spans)
        return -1;
    table->spans = spans;
    spans[table->span_count++] = *span;
    return 0;
}

/* ---- The records ---- */

/* The rows of a function's entries, cut to it. */
struct row_cut {
    uint64_t size;
    int64_t front_at;      /* the highest offset in front of the function, or INT64_MIN: there is no
                              entry there */
    struct line_row front; /* its row, as one of the function's first byte */
    bool has_start;        /* the function's first byte has a row of its own */
    bool goes_on;          /* there is an entry behind the first byte, be it behind the function */
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

/* What was checked when the record was read may have turned to zeros since (interruption.h): then a
 * call may say that it is in itself, and a span that it is of the first of no calls. */
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

/* ---- Order: a merge sort, because of entries at one offset the last one counts ---- */

/* Rows and spans begin with their offset. */
static uint32_t offset_of(const char *items, size_t index, size_t item_bytes)
{
    uint32_t offset;
    memcpy(&offset, items + index * item_bytes, sizeof offset);
    return offset;
}

static bool is_sorted(const char *items, size_t count, size_t item_bytes)
{
    for (size_t i = 1; i < count; i++)
        if (offset_of(items, i, item_bytes) < offset_of(items, i - 1, item_bytes))
            return false;
    return true;
}

/* Merge the sorted runs [0, half) and [half, count) of FROM into TO. */
static void merge(char *to, const char *from, size_t half, size_t count, size_t item_bytes)
{
    size_t left = 0, right = half;
    for (size_t i = 0; i < count; i++) {
        bool take_right = left == half || (right < count && offset_of(from, right, item_bytes) <
                                                                offset_of(from, left, item_bytes));
        size_t taken = take_right ? right++ : left++;
        memcpy(to + i * item_bytes, from + taken * item_bytes, item_bytes);
    }
}

static int sort_items(struct line_table *table, void *items, size_t count, size_t item_bytes)
{
    if (is_sorted(items, count, item_bytes))
        return 0;
    char *from = items, *to = line_table_scratch(table, count * item_bytes);
    if (!to)
        return -1;
    for (size_t half = 1; half < count; half *= 2) {
        for (size_t at = 0; at < count; at += 2 * half) {
            size_t run = count - at < 2 * half ? count - at : 2 * half;
            merge(to + at * item_bytes, from + at * item_bytes, run < half ? run : half, run,
                  item_bytes);
        }
        char *swap = from;
        from = to;
        to = swap;
    }
    if (from != items)
        memcpy(items, from, count * item_bytes);
    return 0;
}

/* Of ITEMS with equal offsets keep the last.  Returns how many are left. */
static size_t drop_replaced(char *items, size_t count, size_t item_bytes)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (i + 1 < count && offset_of(items, i + 1, item_bytes) == offset_of(items, i, item_bytes))
            continue;
        memmove(items + kept++ * item_bytes, items + i * item_bytes, item_bytes);
    }
    return kept;
}

int line_table_read(struct line_table *table, const struct code_lines *lines, uint64_t size)
{
    table->row_count = table->inline_count = table->span_count = 0;
    if (lines->positions ? line_positions_take(lines->positions, size, table)
                         : (lines->entries && take_entries(table, lines, size)) ||
                               (lines->inlines && take_inlines(table, lines->inlines, size)))
        return -1;
    if (sort_items(table, table->rows, table->row_count, sizeof *table->rows) ||
        sort_items(table, table->spans, table->span_count, sizeof *table->spans))
        return -1;
    table->row_count = drop_replaced((char *)table->rows, table->row_count, sizeof *table->rows);
    table->span_count =
        drop_replaced((char *)table->spans, table->span_count, sizeof *table->spans);
    return 0;
}

void line_table_free(struct line_table *table)
{
    free(table->rows);
    free(table->inlines);
    free(table->spans);
    free(table->scratch);
    *table = (struct line_table){0};
}
