/* See chain_report.h. */
#include "injector/check/chain_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROWS = 10 };

/* A file, or all JIT functions of one name. */
struct chain_row {
    const char *name;
    bool jit;
    uint64_t bodies; /* that chains went through */
    uint64_t chains, early, wrong;
    uint64_t ends[CHAIN_ENDS];
    enum chain_end worst; /* the most frequent of the early ends */
    uint64_t first_addr;
};

struct chain_rows {
    struct chain_row *items;
    size_t count;
};

/* ---- Rows ---- */

static void add_place(struct chain_row *row, const struct chain_place *place)
{
    uint64_t early = 0;
    for (int i = 0; i < CHAIN_ENDS; i++) {
        row->ends[i] += place->ends[i];
        early += chain_end_is_early(i) ? place->ends[i] : 0;
        row->wrong += row->jit && chain_end_is_wrong(i) ? place->ends[i] : 0;
    }
    if (early && row->early == 0)
        row->first_addr = place->first_addr;
    row->early += early;
    row->chains += place->chains;
    row->bodies++;
}

static void set_worst(struct chain_row *row)
{
    for (int i = 0; i < CHAIN_ENDS; i++)
        if (chain_end_is_early(i) && row->ends[i] > row->ends[row->worst])
            row->worst = i;
}

/* Entries of one name stand together, functions in front of files. */
static int by_name(const void *left, const void *right)
{
    const struct chain_row *a = left, *b = right;
    return a->jit != b->jit ? (a->jit ? -1 : 1) : strcmp(a->name, b->name);
}

/* Wrong tables first, then other causes that end chains early, then the chains that the copy
 * cuts. */
static int by_harm(const void *left, const void *right)
{
    const struct chain_row *a = left, *b = right;
    const uint64_t keys[][2] = {{a->wrong, b->wrong},
                                {a->early, b->early},
                                {a->ends[CHAIN_UNPROVEN], b->ends[CHAIN_UNPROVEN]},
                                {a->ends[CHAIN_CUT], b->ends[CHAIN_CUT]},
                                {a->chains, b->chains}};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] > keys[i][1] ? -1 : 1;
    return by_name(left, right);
}

static void add_row(struct chain_rows *rows, const char *name, bool jit,
                    const struct chain_place *place)
{
    struct chain_row *row = &rows->items[rows->count++];
    *row = (struct chain_row){.name = name, .jit = jit};
    add_place(row, place);
}

static void collect_rows(struct chain_rows *rows, const struct user_stacks *stacks,
                         const struct chain_census *census)
{
    size_t process;
    for (uint32_t i = 0; i < stacks->source.function_count; i++)
        if (census->functions[i].chains)
            add_row(rows, space_function(&stacks->source, i, &process)->name, true,
                    &census->functions[i]);
    for (size_t i = 0; i < census->file_count; i++)
        if (census->files[i].chains)
            add_row(rows,
                    i ? stacks->walker.files.items[i - 1]->map->map.filename : "unmapped memory",
                    false, &census->files[i]);
}

static void merge_row(struct chain_row *row, const struct chain_row *other)
{
    if (row->early == 0)
        row->first_addr = other->first_addr;
    for (int i = 0; i < CHAIN_ENDS; i++)
        row->ends[i] += other->ends[i];
    row->chains += other->chains;
    row->early += other->early;
    row->wrong += other->wrong;
    row->bodies += other->bodies;
}

static void merge_names(struct chain_rows *rows)
{
    size_t kept = 0;
    qsort(rows->items, rows->count, sizeof *rows->items, by_name);
    for (size_t i = 0; i < rows->count; i++)
        if (kept && by_name(&rows->items[kept - 1], &rows->items[i]) == 0)
            merge_row(&rows->items[kept - 1], &rows->items[i]);
        else
            rows->items[kept++] = rows->items[i];
    rows->count = kept;
}

static int make_rows(struct chain_rows *rows, const struct user_stacks *stacks,
                     const struct chain_census *census)
{
    size_t most = census->chains ? stacks->source.function_count + census->file_count : 0;
    *rows = (struct chain_rows){calloc(most + 1, sizeof *rows->items), 0};
    if (!rows->items)
        return -1;
    if (most == 0)
        return 0;
    collect_rows(rows, stacks, census);
    merge_names(rows);
    for (size_t i = 0; i < rows->count; i++)
        set_worst(&rows->items[i]);
    qsort(rows->items, rows->count, sizeof *rows->items, by_harm);
    return 0;
}

/* ---- What is said ---- */

static void say_row(struct report *report, const struct chain_row *row)
{
    const char *what = row->jit ? "JIT function " : "";
    if (row->early)
        report_line(report, "%8" PRIu64 " of %" PRIu64 " end in %s%s: %s, first at +0x%" PRIx64,
                    row->early, row->chains, what, row->name, chain_end_what(row->worst),
                    row->first_addr);
    else if (row->ends[CHAIN_UNPROVEN])
        report_line(report, "%8" PRIu64 " of %" PRIu64 " go on behind %s%s: %s",
                    row->ends[CHAIN_UNPROVEN], row->chains, what, row->name,
                    chain_end_what(CHAIN_UNPROVEN));
    else if (row->ends[CHAIN_CUT])
        report_line(report, "%8" PRIu64 " of %" PRIu64 " end in %s%s: %s", row->ends[CHAIN_CUT],
                    row->chains, what, row->name, chain_end_what(CHAIN_CUT));
    else
        report_line(report, "%8d of %" PRIu64 " end in %s%s", 0, row->chains, what, row->name);
}

static void report_row(struct report *report, const struct chain_row *row)
{
    report_open(report, NULL, NULL);
    report_text(report, row->jit ? "function" : "file", NULL, row->name);
    report_number(report, "bodies", NULL, row->bodies);
    report_number(report, "chains", NULL, row->chains);
    report_number(report, "through", NULL, row->chains - row->early - row->ends[CHAIN_CUT]);
    report_number(report, "early", NULL, row->early);
    report_flag(report, "wrong_table", row->wrong != 0);
    if (row->early)
        report_number(report, "first_offset", NULL, row->first_addr);
    report_open(report, "ends", NULL);
    for (int i = 0; i < CHAIN_ENDS; i++)
        if (row->ends[i])
            report_number(report, chain_end_id(i), NULL, row->ends[i]);
    report_close(report);
    report_close(report);
}

static void report_places(struct report *report, const struct chain_rows *rows, bool verbose)
{
    size_t said = 0, bad = 0;
    report_open_array(report, "places", NULL);
    for (size_t i = 0; i < rows->count; i++) {
        bool is_bad = rows->items[i].early || rows->items[i].ends[CHAIN_CUT] ||
                      rows->items[i].ends[CHAIN_UNPROVEN];
        bad += is_bad;
        if (verbose || (is_bad && said < FIRST_ROWS)) {
            say_row(report, &rows->items[i]);
            said++;
        }
        if (report->json)
            report_row(report, &rows->items[i]);
    }
    if (bad > said)
        report_line(report, "%8s %zu more %s: -v", "", bad - said,
                    bad - said == 1 ? "function or file" : "functions and files");
    report_close_array(report);
}

static void report_ends(struct report *report, const struct chain_census *census)
{
    uint64_t early = 0;
    for (int i = 0; i < CHAIN_ENDS; i++)
        early += chain_end_is_early(i) ? census->ends[i] : 0;
    report_number(report, "total", "in all", census->chains);
    report_number(report, "whole", "whole", census->ends[CHAIN_WHOLE]);
    report_count(report, "cut", "cut by the size of the copy", census->ends[CHAIN_CUT]);
    report_count(report, "empty", "of which nothing was copied: the page was not present",
                 census->ends[CHAIN_EMPTY]);
    report_count(report, "unproven", "which may leave out callers", census->ends[CHAIN_UNPROVEN]);
    report_count(report, "early", "ended early", early);
    report_count(report, "too_long", "of more frames than a record holds",
                 census->ends[CHAIN_TOO_LONG]);
    report_count(report, "not_read", "of 32-bit programs, or without registers",
                 census->ends[CHAIN_NOT_READ]);
}

/* One line for each reason. */
static void report_reasons(struct report *report, const struct chain_rows *rows)
{
    bool said[CHAIN_ENDS][2] = {{false}};
    const char *remedy;
    report_open_array(report, "remedies", NULL);
    for (size_t i = 0; i < rows->count; i++) {
        const struct chain_row *row = &rows->items[i];
        if (!row->early || said[row->worst][row->jit] ||
            !(remedy = chain_end_remedy(row->worst, row->jit)))
            continue;
        said[row->worst][row->jit] = true;
        report_open(report, NULL, NULL);
        report_line(report, "%s%s: %s", chain_end_id(row->worst), row->jit ? " in JIT code" : "",
                    remedy);
        report_text(report, "end", NULL, chain_end_id(row->worst));
        report_flag(report, "jit", row->jit);
        report_text(report, "remedy", NULL, remedy);
        report_close(report);
    }
    report_close_array(report);
}

int chain_report(struct report *report, const struct user_stacks *stacks,
                 const struct chain_census *census, bool verbose)
{
    struct chain_rows rows;
    int result = make_rows(&rows, stacks, census);
    report_open(report, "chains", "call chains, of the copies of stacks");
    if (!result) {
        report_places(report, &rows, verbose);
        report_ends(report, census);
        uint64_t size = stack_counts_size(&stacks->counts);
        if (size)
            report_line(report,
                        "--call-graph dwarf,%" PRIu64 " would have held those that were cut", size);
        report_number(report, "needed_bytes", NULL, size);
        report_reasons(report, &rows);
    }
    report_close(report);
    free(rows.items);
    return result;
}

void chain_report_none(struct report *report)
{
    report_open(report, "chains", "call chains");
    report_line(report, "there are no copies of stacks to judge tables by: record with "
                        "--call-graph dwarf");
    report_number(report, "total", NULL, 0);
    report_close(report);
}
