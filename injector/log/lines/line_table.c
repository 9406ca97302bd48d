/* See line_table.h. */
#include "injector/log/lines/line_table.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/arrays/run_sort.h"

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
    if (array_reserve(table->rows, table->row_count, table->row_capacity))
        return -1;
    table->rows[table->row_count++] = *row;
    return 0;
}

int line_table_add_inline(struct line_table *table, const struct line_inline *call)
{
    if (array_reserve(table->inlines, table->inline_count, table->inline_capacity))
        return -1;
    table->inlines[table->inline_count++] = *call;
    return 0;
}

int line_table_add_span(struct line_table *table, const struct line_span *span)
{
    if (array_reserve(table->spans, table->span_count, table->span_capacity))
        return -1;
    table->spans[table->span_count++] = *span;
    return 0;
}

/* If ITEMS have equal offsets (an item begins with its offset), keep the last.  Returns how many
 * are left. */
static size_t drop_replaced(unsigned char *items, size_t count, size_t item_bytes)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned char *item = items + i * item_bytes;
        if (i + 1 < count && run_sort_key(item) == run_sort_key(item + item_bytes))
            continue;
        memmove(items + kept++ * item_bytes, item, item_bytes);
    }
    return kept;
}

void line_table_empty(struct line_table *table)
{
    table->row_count = table->inline_count = table->span_count = 0;
}

int line_table_close(struct line_table *table)
{
    size_t row_bytes = sizeof *table->rows, span_bytes = sizeof *table->spans;
    void *room = line_table_scratch(table, table->row_count * row_bytes +
                                               table->span_count * span_bytes + 1);
    if (!room)
        return -1;
    run_sort(table->rows, room, table->row_count, row_bytes);
    run_sort(table->spans, room, table->span_count, span_bytes);
    table->row_count = drop_replaced((void *)table->rows, table->row_count, row_bytes);
    table->span_count = drop_replaced((void *)table->spans, table->span_count, span_bytes);
    return 0;
}

static bool rows_are_equal(const struct line_row *a, const struct line_row *b)
{
    return a->offset == b->offset && a->line == b->line && a->column == b->column &&
           line_text_same(a->file, b->file);
}

static bool inlines_are_equal(const struct line_inline *a, const struct line_inline *b)
{
    return a->parent == b->parent && a->call_line == b->call_line &&
           a->call_column == b->call_column && a->decl_line == b->decl_line &&
           line_text_same(a->name, b->name) && line_text_same(a->call_file, b->call_file) &&
           line_text_same(a->decl_file, b->decl_file);
}

int32_t line_spans_call_at(const struct line_span *spans, size_t count, uint64_t offset)
{
    size_t behind;
    array_bisect(behind, count, spans[behind].offset <= offset);
    return behind ? spans[behind - 1].inline_index : LINE_NOT_INLINED;
}

bool line_tables_are_equal(const struct line_table *a, const struct line_table *b)
{
    if (a->row_count != b->row_count || a->inline_count != b->inline_count ||
        a->span_count != b->span_count)
        return false;
    for (size_t i = 0; i < a->row_count; i++)
        if (!rows_are_equal(&a->rows[i], &b->rows[i]))
            return false;
    for (size_t i = 0; i < a->inline_count; i++)
        if (!inlines_are_equal(&a->inlines[i], &b->inlines[i]))
            return false;
    for (size_t i = 0; i < a->span_count; i++)
        if (a->spans[i].offset != b->spans[i].offset ||
            a->spans[i].inline_index != b->spans[i].inline_index)
            return false;
    return true;
}

void line_table_free(struct line_table *table)
{
    free(table->rows);
    free(table->inlines);
    free(table->spans);
    free(table->scratch);
    *table = (struct line_table){0};
}
