/* The source of one function, decoded and in order: the contents of its records of all kinds.
 *
 * The table is reused for one function after the other, so that it needs the memory of the largest
 * only.
 */
#ifndef PERFJIT_LINE_TABLE_H
#define PERFJIT_LINE_TABLE_H

#include "injector/log/lines/line_text.h"

#include <stddef.h>

enum {
    LINE_NOT_INLINED = -1,
    LINE_MAX_DEPTH = 256, /* of calls inlined into each other: debuggers follow them by recursion */
};

/* From offset on the instructions are from this line of this file. */
struct line_row {
    uint64_t offset; /* from the function's first byte */
    uint32_t line;   /* 0: from none */
    uint32_t column; /* 0: not known */
    struct line_text file;
};

struct line_inline {
    int32_t parent; /* index, or LINE_NOT_INLINED: inlined straight into the function */
    uint32_t depth; /* 0: straight into the function */
    uint32_t call_line, call_column, decl_line;
    struct line_text name, call_file, decl_file;
};

/* From offset on the instructions belong to this inline. */
struct line_span {
    uint64_t offset;
    int32_t inline_index; /* or LINE_NOT_INLINED */
};

struct line_table {
    struct line_row *rows; /* ascending by offset, no two equal */
    size_t row_count, row_capacity;
    struct line_inline *inlines; /* parents come before their children */
    size_t inline_count, inline_capacity;
    struct line_span *spans; /* ascending by offset, no two equal; before the first: not inlined */
    size_t span_count, span_capacity;
    void *scratch;
    size_t scratch_bytes;
};

/* Empty it, for another function. */
void line_table_empty(struct line_table *table);

/* Add one more, at the end.  Return 0, or -1 without memory. */
int line_table_add_row(struct line_table *table, const struct line_row *row);
int line_table_add_inline(struct line_table *table, const struct line_inline *call);
int line_table_add_span(struct line_table *table, const struct line_span *span);

/* Put the added entries in order: of rows or spans of one offset the last one counts.  Returns 0,
 * or -1 without memory. */
int line_table_close(struct line_table *table);

/* The innermost call at OFFSET, by the COUNT SPANS of a closed table; or LINE_NOT_INLINED. */
int32_t line_spans_call_at(const struct line_span *spans, size_t count, uint64_t offset);

/* Whether A and B, both closed, say the same of each instruction. */
bool line_tables_are_equal(const struct line_table *a, const struct line_table *b);

/* BYTES of memory, valid until the next call, or NULL. */
void *line_table_scratch(struct line_table *table, size_t bytes);

void line_table_free(struct line_table *table);

#endif
