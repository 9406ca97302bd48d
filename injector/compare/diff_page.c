/* See diff_page.h. */
#include "injector/compare/diff_page.h"

#include "injector/profile/flamegraph/flamegraph_page.h"
#include "injector/profile/flamegraph/markup.h"
#include "injector/text/printable_text.h"

#include <math.h>
#include <stdlib.h>

/* Widths are whole numbers, of which all together have about so many. */
static const double all_widths = 1e9;

/* The width of each stack by itself: its row also has all that it calls. */
static double *own_widths(const struct diff_report *report)
{
    const struct verdict_rows *rows = &report->verdicts.tables[BY_STACK];
    const struct call_node *nodes = report->set->names.nodes;
    double *base = calloc(rows->count + 1, sizeof *base);
    double *new = calloc(rows->count + 1, sizeof *new);
    for (size_t i = 0; base && new &&i < rows->count; i++) {
        base[i] += rows->items[i].base;
        new[i] += rows->items[i].new;
        if (i) {
            base[nodes[i].parent] -= rows->items[i].base;
            new[nodes[i].parent] -= rows->items[i].new;
        }
    }
    for (size_t i = 0; base && new &&i < rows->count; i++)
        base[i] = fmax(fmax(base[i], new[i]), 0);
    if (!new) {
        free(base);
        base = NULL;
    }
    free(new);
    return base;
}

/* A profile of the stacks, with a sample for each. */
static int add_samples(struct call_profile *picture, const struct diff_report *report)
{
    const struct profile_event event = {0};
    const struct profile_thread thread = {0};
    double *widths = own_widths(report), all = 0;
    int result = !widths || call_profile_add_event(picture, &event) ||
                         call_profile_add_thread(picture, &thread) == PROFILE_NOTHING
                     ? -1
                     : 0;
    for (size_t i = 0; !result && i < picture->node_count; i++)
        all += widths[i];
    for (uint32_t i = 0; !result && i < picture->node_count; i++) {
        struct call_sample sample = {.node = i};
        sample.period = (uint64_t)llround(widths[i] / all * all_widths);
        if (sample.period)
            result = call_profile_add_sample(picture, &sample);
    }
    free(widths);
    return result;
}

static char *title_of(const struct diff_report *report)
{
    char *text = NULL, *rest;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);
    if (!stream)
        return NULL;
    if (report->title[0])
        fprintf(stream, "%s: ", report->title);
    diff_report_put_head(stream, report);
    if (fclose(stream))
        return text;
    for (rest = text; *rest && *rest != '\n'; rest++)
        continue;
    *rest = '\0';
    return text;
}

/* The differences of all stacks, as the page shows them. */
static struct flamegraph_difference *differences_of(const struct diff_report *report)
{
    const struct verdict_rows *rows = &report->verdicts.tables[BY_STACK];
    struct flamegraph_difference *differences = calloc(rows->count + 1, sizeof *differences);
    for (size_t i = 0; differences && i < rows->count; i++) {
        const struct compared_row *row = &rows->items[i];
        differences[i] = (struct flamegraph_difference){row->base, row->new, (int)row->verdict};
    }
    return differences;
}

/* ---- Lines and instructions of a function ---- */

static void put_text(FILE *stream, const char *text)
{
    char *printable = printable_copy(text);
    if (printable)
        markup_put(stream, printable);
    free(printable);
}

static void put_row(FILE *stream, const struct diff_report *report, const struct compared_row *row)
{
    fputs("<tr><td>", stream);
    diff_report_put_value(stream, report, 0, row->base);
    fputs("</td><td>", stream);
    diff_report_put_value(stream, report, 0, row->new);
    fputs("</td><td>", stream);
    diff_report_put_share(stream, row);
    fprintf(stream, "</td><td>%s</td><td>",
            compared_row_differs(row) ? verdict_name(row->verdict) : "");
    put_text(stream, diff_report_string(report, row->number));
    fputs("</td></tr>\n", stream);
}

static void put_table(FILE *stream, const struct diff_report *report, enum run_table table,
                      const char *what)
{
    const struct verdict_rows *rows = &report->verdicts.tables[table];
    fprintf(stream, "<table>\n<caption>%ss of ", what);
    put_text(stream, report->set->lines_of);
    fprintf(stream,
            "</caption>\n<tr><th>base</th><th>new</th><th>change</th><th>verdict</th>"
            "<th>%s</th></tr>\n",
            what);
    for (size_t i = 0; i < rows->count && i < report->most_rows; i++)
        put_row(stream, report, &rows->items[i]);
    fputs("</table>\n", stream);
    if (rows->count > report->most_rows)
        fprintf(stream, "<p>... and %zu more (--rows N)</p>\n", rows->count - report->most_rows);
}

static void put_tables(FILE *stream, const void *context)
{
    const struct diff_report *report = context;
    put_table(stream, report, BY_LINE, "line");
    put_table(stream, report, BY_INSTRUCTION, "instruction");
}

/* ---- The page ---- */

/* Of each run. */
static bool has_times(const struct run_set *set)
{
    return set->time_count && !set->untimed;
}

int diff_page_write(FILE *stream, const struct diff_report *report)
{
    /* Its strings, frames and nodes are the set's. */
    struct call_profile picture = report->set->names;
    char *title = title_of(report);
    struct flamegraph_difference *differences = differences_of(report);
    picture.samples = NULL;
    picture.sample_count = picture.sample_capacity = 0;
    const struct flamegraph_sides sides = {report->set->times, report->set->time_count,
                                           report->set->base, report->set->new};
    int result = title && differences ? add_samples(&picture, report) : -1;
    if (!result) {
        const struct flamegraph_request request = {.profile = &picture,
                                                   .choice = {.weight = WEIGHT_PERIOD},
                                                   .title = title,
                                                   .unit = report->unit,
                                                   .difference = differences,
                                                   .sides = has_times(report->set) ? &sides : NULL,
                                                   .put_tables =
                                                       report->set->lines_of ? put_tables : NULL,
                                                   .context = report};
        result = flamegraph_page_write(&request, stream);
    }
    free(picture.samples);
    free(picture.events);
    free(picture.threads);
    free(picture.thread_index.places);
    free(differences);
    free(title);
    return result;
}
