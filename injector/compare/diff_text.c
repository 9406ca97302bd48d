/* See diff_text.h. */
#include "injector/compare/diff_text.h"

#include "injector/text/plural.h"
#include "injector/text/printable_text.h"

#include <stdlib.h>

/* The change in percent stands to the right, 10 wide. */
static void put_share(FILE *stream, const struct compared_row *row)
{
    char *text = NULL;
    size_t bytes;
    FILE *memory = open_memstream(&text, &bytes);
    if (!memory)
        return;
    diff_report_put_share(memory, row);
    fclose(memory);
    fprintf(stream, " %10s", text);
    free(text);
}

static void put_row(FILE *stream, const struct diff_report *report, const struct compared_row *row,
                    const char *name, const char *move)
{
    putc(' ', stream); /* between numbers that are wider, too */
    diff_report_put_value(stream, report, 12, row->base);
    putc(' ', stream);
    diff_report_put_value(stream, report, 12, row->new);
    put_share(stream, row);
    fprintf(stream, "  %-10s  ", compared_row_differs(row) ? verdict_name(row->verdict) : "");
    printable_put(stream, name);
    fputs(*move ? "  (" : "", stream);
    printable_put(stream, move);
    fputs(*move ? ")\n" : "\n", stream);
}

static void put_columns(FILE *stream, const char *what)
{
    fprintf(stream, "\n%13s%13s %10s  %-10s  ", "base", "new", "change", "verdict");
    printable_put(stream, what);
    putc('\n', stream);
}

static void put_activities(FILE *stream, const struct diff_report *report)
{
    const struct verdict_rows *rows = &report->verdicts.tables[BY_ACTIVITY];
    put_columns(stream, "what a run does");
    for (size_t i = 0; i < rows->count; i++)
        put_row(stream, report, &rows->items[i],
                activity_name((enum activity)rows->items[i].number), "");
}

static void put_functions(FILE *stream, const struct diff_report *report)
{
    const struct verdict_rows *rows = &report->verdicts.tables[BY_FUNCTION];
    put_columns(stream, "function, by itself, a run");
    put_row(stream, report, &report->verdicts.total, "(in all)", "");
    for (size_t i = 0; i < rows->count && i < report->most_rows; i++) {
        const struct compared_row *row = &rows->items[i];
        char *move = compared_row_differs(row) ? move_text(&report->moves, row) : NULL;
        put_row(stream, report, row, diff_report_string(report, row->number), move ? move : "");
        free(move);
    }
    if (rows->count > report->most_rows)
        fprintf(stream, "... and %zu more function%s (--rows N)\n", rows->count - report->most_rows,
                plural(rows->count - report->most_rows));
}

static void put_places(FILE *stream, const struct diff_report *report, enum run_table table,
                       const char *what)
{
    const struct verdict_rows *rows = &report->verdicts.tables[table];
    char *columns;
    if (asprintf(&columns, "%s of %s", what, report->set->lines_of) < 0)
        return;
    put_columns(stream, columns);
    free(columns);
    for (size_t i = 0; i < rows->count && i < report->most_rows; i++)
        put_row(stream, report, &rows->items[i], diff_report_string(report, rows->items[i].number),
                "");
    if (rows->count > report->most_rows)
        fprintf(stream, "... and %zu more (--rows N)\n", rows->count - report->most_rows);
}

void diff_text_put(FILE *stream, const struct diff_report *report)
{
    diff_report_put_head(stream, report);
    for (size_t i = 0; i < report->set->note_count; i++)
        fprintf(stream, "%s\n", report->set->notes[i]);
    put_activities(stream, report);
    put_functions(stream, report);
    if (report->set->lines_of) {
        put_places(stream, report, BY_LINE, "line");
        put_places(stream, report, BY_INSTRUCTION, "instruction");
    }
}
