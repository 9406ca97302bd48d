/* See code_rows.h. */
#include "agents/java/code_rows.h"

#include <stdlib.h>

bool code_rows_add(struct code_rows *rows, const struct jitdump_line *line, uint32_t inlined)
{
    if (rows->count && rows->lines[rows->count - 1].addr == line->addr)
        rows->count--;
    if (rows->count == rows->capacity) {
        const size_t capacity = rows->capacity ? 2 * rows->capacity : 256;
        struct jitdump_line *lines = realloc(rows->lines, capacity * sizeof *lines);
        rows->lines = lines ? lines : rows->lines;
        uint32_t *inlines = realloc(rows->inlines, capacity * sizeof *inlines);
        rows->inlines = inlines ? inlines : rows->inlines;
        if (!lines || !inlines)
            return false;
        rows->capacity = capacity;
    }
    rows->lines[rows->count] = *line;
    rows->inlines[rows->count++] = inlined;
    return true;
}

/* Where the method itself was at row I. */
static struct jitdump_line own_line(const struct code_rows *rows,
                                    const struct jitdump_inline *calls, size_t i)
{
    struct jitdump_line line = rows->lines[i];
    for (uint32_t call = rows->inlines[i]; call != JITDUMP_NOT_INLINED; call = calls[call].parent) {
        line.file = calls[call].call_file;
        line.line = calls[call].call_line;
    }
    return line;
}

bool code_rows_set_own(struct code_rows *rows, const struct jitdump_inline *calls,
                       const struct frame_edges *edges, uint64_t begin, uint64_t end)
{
    struct code_rows with = {0};
    size_t next = 0;
    bool good = true;
    for (size_t i = 0; i < edges->count && good; i++) {
        const uint64_t from = begin + edges->items[i].from, to = begin + edges->items[i].to;
        for (; next < rows->count && rows->lines[next].addr < from && good; next++)
            good = code_rows_add(&with, &rows->lines[next], rows->inlines[next]);
        struct jitdump_line line = own_line(rows, calls, next ? next - 1 : 0);
        line.addr = from;
        good = good && code_rows_add(&with, &line, JITDUMP_NOT_INLINED);
        while (next < rows->count && rows->lines[next].addr <= to)
            next++;
        line = rows->lines[next - 1]; /* as it was behind the edge */
        line.addr = to;
        good = good && (to >= end || code_rows_add(&with, &line, rows->inlines[next - 1]));
    }
    for (; next < rows->count && good; next++)
        good = code_rows_add(&with, &rows->lines[next], rows->inlines[next]);
    if (!good) {
        code_rows_free(&with);
        return false;
    }
    code_rows_free(rows);
    *rows = with;
    return true;
}

void code_rows_free(struct code_rows *rows)
{
    free(rows->lines);
    free(rows->inlines);
    *rows = (struct code_rows){0};
}
