/* See verdict.h. */
#include "injector/compare/verdict.h"

#include "injector/compare/permutation.h"

#include <math.h>
#include <stdlib.h>

static const double level = 0.05;
static const double power_80 = 0.84; /* standard errors beyond the critical value */

const char *verdict_name(enum verdict verdict)
{
    static const char *const names[] = {"slower", "faster", "no change", "can't tell"};
    return names[verdict];
}

/* ---- The matrix ---- */

/* Run by run, the base's first: a value for each function; in TOTALS their sums. */
static void fill(double *values, double *totals, const struct run_set *set)
{
    size_t place[2] = {0, set->base}, functions = run_set_functions(set);
    for (size_t i = 0; i < set->run_count; i++) {
        const struct compared_run *run = &set->runs[i];
        size_t row = place[run->is_new]++;
        for (size_t k = 0; k < functions && k < run->count; k++) {
            values[row * functions + k] = run->values[k];
            totals[row] += run->values[k];
        }
    }
}

static struct compared_row row_of(const struct permutation_runs *runs, size_t function)
{
    struct compared_row row = {.name = (uint32_t)function, .p = 1, .verdict = VERDICT_UNKNOWN};
    for (size_t i = 0; i < runs->base + runs->new; i++) {
        double value = runs->values[i * runs->functions + function];
        *(i < runs->base ? &row.base : &row.new) += value;
    }
    row.base /= (double)runs->base;
    row.new /= (double)runs->new;
    return row;
}

/* ---- The total ---- */

/* The standard error of the difference of the means. */
static double standard_error(const struct permutation_runs *runs, const struct compared_row *total)
{
    double squares = 0;
    size_t all = runs->base + runs->new;
    for (size_t i = 0; i < runs->base && runs->paired; i++)
        squares +=
            pow(runs->values[i] - runs->values[runs->base + i] - total->base + total->new, 2);
    for (size_t i = 0; i < all && !runs->paired; i++)
        squares += pow(runs->values[i] - (i < runs->base ? total->base : total->new), 2);
    if (runs->paired)
        return sqrt(squares / (double)(runs->base - 1) / (double)runs->base);
    return sqrt(squares / (double)(all - 2) * (1 / (double)runs->base + 1 / (double)runs->new));
}

static enum verdict judge(const struct compared_row *row, double least, double floor)
{
    if (row->p > level)
        return least <= floor ? VERDICT_NO_CHANGE : VERDICT_UNKNOWN;
    if (fabs(row->new - row->base) < floor)
        return VERDICT_NO_CHANGE;
    return row->new > row->base ? VERDICT_SLOWER : VERDICT_FASTER;
}

static int judge_total(struct verdicts *verdicts, const struct permutation_runs *runs)
{
    double critical;
    if (permutation_test(&verdicts->total.p, &critical, runs))
        return -1;
    verdicts->least =
        (critical + power_80) * standard_error(runs, &verdicts->total) / verdicts->total.base;
    verdicts->total.verdict = judge(&verdicts->total, verdicts->least * verdicts->total.base,
                                    verdicts->floor * verdicts->total.base);
    return 0;
}

/* ---- Functions ---- */

static int compare(const void *left, const void *right)
{
    const struct compared_row *a = left, *b = right;
    double first = fabs(a->new - a->base), second = fabs(b->new - b->base);
    if ((a->verdict <= VERDICT_FASTER) != (b->verdict <= VERDICT_FASTER))
        return a->verdict <= VERDICT_FASTER ? -1 : 1;
    if (first != second)
        return first > second ? -1 : 1;
    return a->name < b->name ? -1 : a->name > b->name;
}

static int judge_rows(struct verdicts *verdicts, const struct permutation_runs *runs)
{
    double critical, *p = calloc(runs->functions, sizeof *p);
    int result = p ? 0 : -1;
    if (!result && verdicts->enough)
        result = permutation_test(p, &critical, runs);
    for (size_t i = 1; !result && i < runs->functions; i++) {
        struct compared_row row = row_of(runs, i);
        row.p = verdicts->enough ? p[i] : 1;
        row.verdict = judge(&row, INFINITY, verdicts->floor * verdicts->total.base);
        if (row.base > 0 || row.new > 0)
            verdicts->rows[verdicts->row_count++] = row;
    }
    free(p);
    if (!result)
        qsort(verdicts->rows, verdicts->row_count, sizeof *verdicts->rows, compare);
    return result;
}

int verdicts_find(struct verdicts *verdicts, const struct run_set *set, bool paired, double floor)
{
    size_t functions = run_set_functions(set), least = paired ? LEAST_PAIRS : LEAST_RUNS;
    double *values = calloc(set->run_count * functions, sizeof *values);
    double *totals = calloc(set->run_count, sizeof *totals);
    *verdicts = (struct verdicts){.floor = floor, .paired = paired};
    verdicts->enough = set->base >= least && set->new >= least;
    verdicts->rows = calloc(functions, sizeof *verdicts->rows);
    int result = values && totals && verdicts->rows ? 0 : -1;
    if (!result) {
        const struct permutation_runs all = {totals, 1, set->base, set->new, paired};
        const struct permutation_runs each = {values, functions, set->base, set->new, paired};
        fill(values, totals, set);
        verdicts->total = row_of(&all, 0);
        result = (verdicts->enough && judge_total(verdicts, &all)) || judge_rows(verdicts, &each);
    }
    free(values);
    free(totals);
    return result ? -1 : 0;
}

void verdicts_free(struct verdicts *verdicts)
{
    free(verdicts->rows);
}
