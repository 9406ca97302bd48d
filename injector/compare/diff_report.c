/* See diff_report.h. */
#include "injector/compare/diff_report.h"

#include "injector/text/plural.h"
#include "injector/text/printable_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CAUSES = 3, MOST_NAME_BYTES = 160 };

/* A collector or a compiler is named as a cause if it has this share of the change. */
static const double large_share = 0.25;

int diff_report_make(struct diff_report *report, const struct run_set *set, bool paired,
                     double floor)
{
    *report = (struct diff_report){.set = set, .unit = "ns", .title = "", .most_rows = SIZE_MAX};
    return verdicts_find(&report->verdicts, set, paired, floor) ||
                   moves_find(&report->moves, set, &report->verdicts)
               ? -1
               : 0;
}

void diff_report_free(struct diff_report *report)
{
    moves_free(&report->moves);
    verdicts_free(&report->verdicts);
}

const char *diff_report_string(const struct diff_report *report, uint32_t number)
{
    return call_profile_string(&report->set->names, number);
}

/* ---- Values ---- */

static bool is_ns(const struct diff_report *report)
{
    return strcmp(report->unit, "ns") == 0;
}

void diff_report_put_value(FILE *stream, const struct diff_report *report, int width, double value)
{
    if (is_ns(report))
        fprintf(stream, "%*.1f ms", width > 3 ? width - 3 : 0, value / 1e6);
    else
        fprintf(stream, "%*.0f", width, value);
}

void diff_report_put_change(FILE *stream, const struct diff_report *report, double change)
{
    if (is_ns(report))
        fprintf(stream, "%+.1f ms", change / 1e6);
    else
        fprintf(stream, "%+.0f", change);
}

void diff_report_put_share(FILE *stream, const struct compared_row *row)
{
    bool is_sure = compared_row_is_sure(row);
    if (row->base > 0 && row->new > 0)
        fprintf(stream, "%+.1f %%", 100 * compared_row_change(row) / row->base);
    else if (row->base > 0)
        fputs(is_sure ? "vanished" : "base only", stream);
    else
        fputs(row->new <= 0 ? "none" : is_sure ? "new" : "new only", stream);
}

/* ---- What it comes from ---- */

/* A name in a line of several ones. */
static void put_short(FILE *stream, const char *name)
{
    size_t bytes = 0, left = strlen(name), next;
    while (left) {
        next = printable_bytes(name + bytes, left);
        next = next ? next : 1;
        if (bytes + next > MOST_NAME_BYTES)
            break;
        bytes += next;
        left -= next;
    }
    char *part = strndup(name, bytes);
    if (part)
        printable_put(stream, part);
    fputs(left ? "..." : "", stream);
    free(part);
}

/* The parts of the line of causes. */
struct cause_line {
    FILE *stream;
    const struct diff_report *report;
    double change; /* the total's; 0: it has none, and differences in either direction are
                    * reported */
    const char *word;
    size_t count;
};

static void put_cause(struct cause_line *line, const char *name, double change, const char *move)
{
    fprintf(line->stream, "%s", line->count++ ? "; " : line->word);
    put_short(line->stream, name);
    fputc(' ', line->stream);
    diff_report_put_change(line->stream, line->report, change);
    if (*move) {
        fputs(" (", line->stream);
        put_short(line->stream, move);
        fputc(')', line->stream);
    }
}

/* Whether ROW differs, in the same direction as the total. */
static bool is_cause(const struct cause_line *line, const struct compared_row *row)
{
    return compared_row_differs(row) &&
           (line->change == 0 || compared_row_change(row) * line->change > 0);
}

/* Whether ROW, which is a cause, is a large one. */
static bool is_large(const struct cause_line *line, const struct compared_row *row)
{
    return line->change == 0 || compared_row_change(row) / line->change >= large_share;
}

static void put_services(struct cause_line *line)
{
    const struct verdict_rows *rows = &line->report->verdicts.tables[BY_ACTIVITY];
    for (size_t i = 0; i < rows->count; i++) {
        const struct compared_row *row = &rows->items[i];
        if ((row->number == ACTIVITY_COLLECTOR || row->number == ACTIVITY_COMPILER) &&
            is_cause(line, row) && is_large(line, row))
            put_cause(line, activity_name((enum activity)row->number), compared_row_change(row),
                      "");
    }
}

static void put_functions(struct cause_line *line)
{
    const struct verdict_rows *rows = &line->report->verdicts.tables[BY_FUNCTION];
    for (size_t i = 0; i < rows->count && line->count < MOST_CAUSES; i++) {
        const struct compared_row *row = &rows->items[i];
        if (!is_cause(line, row))
            continue;
        char *move = move_text(&line->report->moves, row);
        put_cause(line, diff_report_string(line->report, row->number), compared_row_change(row),
                  move ? move : "");
        free(move);
    }
}

/* Put why ROW, which changed most, is not a cause. */
static void put_why(const struct cause_line *line, const struct compared_row *row)
{
    const struct verdicts *verdicts = &line->report->verdicts;
    if (compared_row_is_sure(row))
        fprintf(line->stream, "by functions that are below the floor of %.1f %% each; most: ",
                100 * verdicts->floor);
    else if (row->least > 0)
        fputs("by no function beyond its own noise; most: ", line->stream);
    else
        fputs("by functions that are too small to be tested; most: ", line->stream);
}

/* If no function differs by itself: put the one that changed most. */
static void put_most(struct cause_line *line)
{
    const struct verdict_rows *rows = &line->report->verdicts.tables[BY_FUNCTION];
    const struct compared_row *most = NULL;
    for (size_t i = 0; i < rows->count; i++)
        if (compared_row_change(&rows->items[i]) * line->change > 0 &&
            (!most || fabs(compared_row_change(&rows->items[i])) > fabs(compared_row_change(most))))
            most = &rows->items[i];
    if (!most)
        return;
    put_why(line, most);
    put_short(line->stream, diff_report_string(line->report, most->number));
    fputc(' ', line->stream);
    diff_report_put_change(line->stream, line->report, compared_row_change(most));
}

/* A function can be slower for certain where the total is not: it has less noise than all of them,
 * or another one is faster. */
static void put_causes(FILE *stream, const struct diff_report *report)
{
    const struct compared_row *total = &report->verdicts.total;
    bool differs = compared_row_differs(total);
    struct cause_line line = {stream, report, differs ? report->verdicts.middle.change : 0,
                              differs ? "by: " : "but: ", 0};
    put_services(&line);
    put_functions(&line);
    if (differs && !line.count)
        put_most(&line);
    if (differs || line.count)
        fputc('\n', stream);
}

/* ---- The first lines ---- */

/* Put the runs that are far off, and what they make of the means. */
static void put_far_runs(FILE *stream, const struct diff_report *report)
{
    const struct verdicts *verdicts = &report->verdicts;
    const struct middle_change *middle = &verdicts->middle;
    double by_means = compared_row_change(&verdicts->total) / verdicts->total.base;
    for (size_t i = 0; i < verdicts->far_count; i++) {
        const struct far_run *run = &verdicts->far[i];
        fprintf(stream, "run %zu of the %s is far off: ", run->number,
                run->is_new ? "new ones" : "base");
        diff_report_put_value(stream, report, 0, run->value);
        fputs(", and their middle is ", stream);
        diff_report_put_value(stream, report, 0, run->is_new ? middle->new : middle->base);
        fputc('\n', stream);
    }
    if (verdicts->far_count)
        fprintf(stream, "the means, which these runs move, differ by %+.1f %%\n", 100 * by_means);
}

static void put_sensitivity(FILE *stream, const struct verdicts *verdicts)
{
    const struct compared_row *total = &verdicts->total;
    if (total->verdict == VERDICT_NO_CHANGE && compared_row_is_sure(total))
        fprintf(stream, "the change is more than noise, and below the floor of %.1f %%\n",
                100 * verdicts->floor);
    else
        fprintf(stream,
                "4 of 5 such comparisons would show a change of %.1f %%; less than %.1f %% is "
                "none\n",
                100 * total->least / verdicts->middle.base, 100 * verdicts->floor);
}

void diff_report_put_head(FILE *stream, const struct diff_report *report)
{
    const struct verdicts *verdicts = &report->verdicts;
    const struct compared_row *total = &verdicts->total;
    if (!verdicts->enough) {
        fprintf(stream,
                "no verdict: %zu against %zu run%s are too few to tell a change from noise; at "
                "least 4 against 4, or 6 pairs (--paired)\n",
                report->set->base, report->set->new, plural(report->set->new));
        return;
    }
    fprintf(stream, "%s: %+.1f %% in all, %zu against %zu runs%s, p %.4f\n",
            verdict_name(total->verdict), 100 * verdicts->middle.change / verdicts->middle.base,
            report->set->base, report->set->new, verdicts->paired ? " in pairs" : "", total->p);
    put_causes(stream, report);
    put_sensitivity(stream, verdicts);
    put_far_runs(stream, report);
    if (total->verdict == VERDICT_UNKNOWN && !verdicts->paired)
        fprintf(stream, "perfjit bench --order together runs both at the same time, and can tell "
                        "smaller changes\n");
}
