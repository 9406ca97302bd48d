/* See diff_markdown.h. */
#include "injector/compare/diff_markdown.h"

#include "injector/text/plural.h"
#include "injector/text/printable_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { NOTICE_BYTES = 200 }; /* the room that is kept for the note on omitted rows */

/* ---- Text ---- */

/* Letters, digits and harmless characters stay; the rest of ASCII becomes references.  Unprintable
 * characters are escaped as in the text output. */
static void put_escaped(FILE *stream, const char *text)
{
    char *printable = printable_copy(text);
    for (const char *at = printable; at && *at; at++) {
        unsigned char letter = (unsigned char)*at;
        bool is_plain = isalnum(letter) || strchr(" .,;/+%()-", letter) ||
                        (letter == ':' && (at[1] == ' ' || !at[1]));
        if (letter >= 0x80 || is_plain)
            putc(letter, stream);
        else
            fprintf(stream, "&#%d;", letter);
    }
    free(printable);
}

void diff_markdown_put_code(FILE *stream, const char *text)
{
    fputs("<code>", stream);
    put_escaped(stream, text);
    fputs("</code>", stream);
}

/* ---- Pieces, each of which is there whole or not at all ---- */

struct markdown {
    FILE *stream;
    const struct diff_report *report;
    size_t most_bytes, left;
};

/* Write piece number NUMBER of its kind. */
typedef void piece_writer(FILE *stream, const struct diff_report *report, size_t number);

/* Put WRITE's output, if there is room for it.  Returns 1, 0 if there is none, -1 without
 * memory. */
static int put_piece(struct markdown *markdown, piece_writer *write, size_t number)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (!memory)
        return -1;
    write(memory, markdown->report, number);
    bool failed = ferror(memory) != 0;
    failed |= fclose(memory) != 0;
    int result = failed ? -1 : bytes < markdown->left;
    if (result > 0) {
        fwrite(text, 1, bytes, markdown->stream);
        markdown->left -= bytes;
    }
    free(text);
    return result;
}

/* Whether LINE has names of functions: GitHub notifies a user for "@you" in text, in any spelling,
 * makes a link of "www.x.y", and does neither in code. */
static bool is_causes(const char *line)
{
    return strncmp(line, "by", 2) == 0 || strncmp(line, "but: ", 5) == 0;
}

/* The first line is the verdict, the others are a paragraph each. */
static void write_head(FILE *stream, const struct diff_report *report, size_t number)
{
    char *text = NULL, *rest = NULL;
    size_t bytes;
    FILE *memory = open_memstream(&text, &bytes);
    (void)number;
    if (!memory)
        return;
    diff_report_put_head(memory, report);
    fclose(memory);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        fputs(line == text ? "### " : "", stream);
        (is_causes(line) ? diff_markdown_put_code : put_escaped)(stream, line);
        fputs("\n\n", stream);
    }
    free(text);
    for (size_t i = 0; i < report->set->note_count; i++) { /* with names of programs and files */
        diff_markdown_put_code(stream, report->set->notes[i]);
        fputs("\n\n", stream);
    }
}

static void write_row(FILE *stream, const struct diff_report *report,
                      const struct compared_row *row, const char *name, const char *move)
{
    fputs("| ", stream);
    diff_report_put_value(stream, report, 0, row->base);
    fputs(" | ", stream);
    diff_report_put_value(stream, report, 0, row->new);
    fputs(" | ", stream);
    diff_report_put_share(stream, row);
    fprintf(stream, " | %s | ", compared_row_differs(row) ? verdict_name(row->verdict) : "");
    diff_markdown_put_code(stream, name);
    if (*move) {
        fputs(" ", stream);
        diff_markdown_put_code(stream, move);
    }
    fputs(" |\n", stream);
}

static void write_activities(FILE *stream, const struct diff_report *report, size_t number)
{
    const struct verdict_rows *rows = &report->verdicts.tables[BY_ACTIVITY];
    (void)number;
    fputs("| base | new | change | verdict | what a run does |\n|---:|---:|---:|---|---|\n",
          stream);
    write_row(stream, report, &report->verdicts.total, "(in all)", "");
    for (size_t i = 0; i < rows->count; i++)
        write_row(stream, report, &rows->items[i],
                  activity_name((enum activity)rows->items[i].number), "");
}

static void write_function_columns(FILE *stream, const struct diff_report *report, size_t number)
{
    (void)report, (void)number;
    fputs("\n| base | new | change | verdict | function, by itself, a run |\n"
          "|---:|---:|---:|---|---|\n",
          stream);
}

static void write_function(FILE *stream, const struct diff_report *report, size_t number)
{
    const struct compared_row *row = &report->verdicts.tables[BY_FUNCTION].items[number];
    char *move = compared_row_differs(row) ? move_text(&report->moves, row) : NULL;
    write_row(stream, report, row, diff_report_string(report, row->number), move ? move : "");
    free(move);
}

/* Put the columns of the places in a chosen function. */
static void write_place_columns(FILE *stream, const struct diff_report *report, const char *what)
{
    fprintf(stream, "\n| base | new | change | verdict | %s of ", what);
    diff_markdown_put_code(stream, report->set->lines_of);
    fputs(" |\n|---:|---:|---:|---|---|\n", stream);
}

static void write_line_columns(FILE *stream, const struct diff_report *report, size_t number)
{
    (void)number;
    write_place_columns(stream, report, "line");
}

static void write_instruction_columns(FILE *stream, const struct diff_report *report, size_t number)
{
    (void)number;
    write_place_columns(stream, report, "instruction");
}

static void write_line(FILE *stream, const struct diff_report *report, size_t number)
{
    const struct compared_row *row = &report->verdicts.tables[BY_LINE].items[number];
    write_row(stream, report, row, diff_report_string(report, row->number), "");
}

static void write_instruction(FILE *stream, const struct diff_report *report, size_t number)
{
    const struct compared_row *row = &report->verdicts.tables[BY_INSTRUCTION].items[number];
    write_row(stream, report, row, diff_report_string(report, row->number), "");
}

/* Put the rows of TABLE, each by WRITE, up to the chosen number and the room, and the number of
 * omitted ones.  Returns 1, 0 if there was no room for one, -1 without memory. */
static int put_rows(struct markdown *markdown, enum run_table table, piece_writer *write,
                    const char *what)
{
    size_t count = markdown->report->verdicts.tables[table].count, shown = 0;
    int result = 1;
    while (result > 0 && shown < count && shown < markdown->report->most_rows)
        if ((result = put_piece(markdown, write, shown)) > 0)
            shown++;
    size_t left = count - shown;
    if (result == 0)
        fprintf(markdown->stream, "\n%zu more %s%s %s left out: this is limited to %zu KiB.\n",
                left, what, plural(left), is_or_are(left), markdown->most_bytes / 1024);
    else if (result > 0 && left)
        fprintf(markdown->stream, "\n... and %zu more %s%s.\n", left, what, plural(left));
    return result;
}

/* The rows of a function's places.  They get their room before the other functions: there may be
 * many functions, and these places were requested. */
static int put_places(struct markdown *markdown)
{
    if (!markdown->report->set->lines_of)
        return 1;
    int result = put_piece(markdown, write_line_columns, 0);
    result = result > 0 ? put_rows(markdown, BY_LINE, write_line, "line") : result;
    result = result > 0 ? put_piece(markdown, write_instruction_columns, 0) : result;
    return result > 0 ? put_rows(markdown, BY_INSTRUCTION, write_instruction, "instruction")
                      : result;
}

int diff_markdown_put(FILE *stream, const struct diff_report *report, size_t most_bytes)
{
    struct markdown markdown = {stream, report, most_bytes, most_bytes - 3 * NOTICE_BYTES};
    int result = put_piece(&markdown, write_head, 0);
    result = result > 0 ? put_piece(&markdown, write_activities, 0) : result;
    result = result > 0 ? put_places(&markdown) : result;
    result = result > 0 ? put_piece(&markdown, write_function_columns, 0) : result;
    if (result > 0)
        return put_rows(&markdown, BY_FUNCTION, write_function, "function") < 0 ? -1 : 0;
    size_t left = report->verdicts.tables[BY_FUNCTION].count;
    if (result == 0)
        fprintf(stream, "\n%zu function%s %s left out: this is limited to %zu KiB.\n", left,
                plural(left), is_or_are(left), most_bytes / 1024);
    return result;
}
