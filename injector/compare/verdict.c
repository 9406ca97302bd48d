/* See verdict.h. */
#include "injector/compare/verdict.h"

#include "injector/compare/permutation.h"
#include "injector/compare/run_middle.h"
#include "injector/compare/run_ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *verdict_name(enum verdict verdict)
{
    static const char *const names[] = {"slower", "faster", "no change", "can't tell"};
    return names[verdict];
}

/* ---- Values ---- */

/* A value for each number of a table, run by run, the base's first. */
struct value_matrix {
    double *values;
    size_t runs, base, width;
    bool paired;
};

static int matrix_make(struct value_matrix *matrix, const struct run_set *set, size_t width,
                       bool paired)
{
    *matrix = (struct value_matrix){NULL, set->run_count, set->base, width, paired};
    matrix->values = calloc(matrix->runs * width + 1, sizeof *matrix->values);
    return matrix->values ? 0 : -1;
}

static double *matrix_run(const struct value_matrix *matrix, size_t run)
{
    return matrix->values + run * matrix->width;
}

/* TABLE's values, from column FIRST on. */
static void fill(struct value_matrix *matrix, const struct run_set *set, enum run_table table,
                 size_t first)
{
    size_t place[2] = {0, set->base}, count = run_set_count(set, table);
    for (size_t i = 0; i < set->run_count; i++) {
        const struct run_values *values = &set->runs[i].tables[table];
        double *to = matrix_run(matrix, place[set->runs[i].is_new]++);
        for (size_t k = 0; k < count && k < values->count; k++)
            to[first + k] = values->items[k];
    }
}

/* Each stack's own, and all that it calls. */
static void add_callees(struct value_matrix *matrix, const struct run_set *set)
{
    for (size_t run = 0; run < matrix->runs; run++)
        for (size_t i = matrix->width; i-- > 1;)
            matrix_run(matrix, run)[set->names.nodes[i].parent] += matrix_run(matrix, run)[i];
}

static void sum_runs(struct value_matrix *totals, const struct value_matrix *matrix)
{
    for (size_t run = 0; run < matrix->runs; run++)
        for (size_t i = 0; i < matrix->width; i++)
            totals->values[run] += matrix_run(matrix, run)[i];
}

/* ---- Rows ---- */

static struct compared_row row_of(const struct value_matrix *matrix, size_t column)
{
    struct compared_row row = {
        .number = (uint32_t)column, .p = 1, .q = 1, .verdict = VERDICT_UNKNOWN};
    for (size_t i = 0; i < matrix->runs; i++)
        *(i < matrix->base ? &row.base : &row.new) += matrix_run(matrix, i)[column];
    row.base /= (double)matrix->base;
    row.new /= (double)(matrix->runs - matrix->base);
    return row;
}

/* Of the COUNT runs of COLUMN from FIRST on. */
static struct welch_side side_of(const struct value_matrix *matrix, size_t column, size_t first,
                                 size_t count, double mean)
{
    double squares = 0;
    for (size_t i = first; i < first + count; i++)
        squares += pow(matrix_run(matrix, i)[column] - mean, 2);
    return (struct welch_side){squares / (double)(count - 1) / (double)count, (double)count - 1};
}

/* The standard error of the difference of ROW's means. */
static struct welch error_of(const struct value_matrix *matrix, const struct compared_row *row,
                             size_t column)
{
    size_t base = matrix->base, new = matrix->runs - base;
    double squares = 0;
    for (size_t i = 0; i < base && matrix->paired; i++)
        squares += pow(matrix_run(matrix, i)[column] - matrix_run(matrix, base + i)[column] +
                           compared_row_change(row),
                       2);
    return matrix->paired ? (struct welch){sqrt(squares / (double)(base - 1) / (double)base),
                                           (double)(base - 1)}
                          : welch_of(side_of(matrix, column, 0, base, row->base),
                                     side_of(matrix, column, base, new, row->new));
}

/* The change that 4 of 5 comparisons show, of which 5 % say by chance that there is one: they are
 * beyond CRITICAL by the t of 0.8, which is by the first two terms of Cornish and Fisher. */
static double least_of(struct welch welch, double critical)
{
    return (welch_t(critical, welch.freedom) + 0.842 + 0.359 / welch.freedom) * welch.error;
}

static enum verdict judge(const struct compared_row *row, double change, double floor)
{
    if (!compared_row_is_sure(row))
        return row->least <= floor ? VERDICT_NO_CHANGE : VERDICT_UNKNOWN;
    if (fabs(change) < floor)
        return VERDICT_NO_CHANGE;
    return change > 0 ? VERDICT_SLOWER : VERDICT_FASTER;
}

/* ---- Tests ---- */

/* Rows to be tested together, by columns of their own. */
struct row_test {
    struct compared_row **rows;
    struct value_matrix matrix;
    double *p, *q;
};

/* The rows to test are chosen by a property that no relabelling changes.  If all of a row, gone or
 * new, would be less than half of the floor, the row can't matter, and only makes others' q larger.
 */
static bool can_matter(const struct value_matrix *matrix, const struct compared_row *row,
                       double least)
{
    double base = (double)matrix->base, new = (double)matrix->runs - base;
    double all = row->base * base + new * row->new;
    return all > 0 && all / fmin(base, new) >= least / 2;
}

/* WANTED: by number, which rows may be tested; NULL: all. */
static int test_begin(struct row_test *test, const struct value_matrix *matrix,
                      struct verdict_rows *rows, double least, const bool *wanted)
{
    size_t count = 0;
    *test = (struct row_test){.rows = calloc(rows->count + 1, sizeof *test->rows)};
    for (size_t i = 0; test->rows && i < rows->count; i++)
        if ((!wanted || wanted[rows->items[i].number]) &&
            can_matter(matrix, &rows->items[i], least))
            test->rows[count++] = &rows->items[i];
    test->matrix = *matrix;
    test->matrix.width = count;
    test->matrix.values = calloc(matrix->runs * count + 1, sizeof(double));
    test->p = calloc(count + 1, sizeof *test->p);
    test->q = calloc(count + 1, sizeof *test->q);
    if (!test->rows || !test->matrix.values || !test->p || !test->q)
        return -1;
    for (size_t run = 0; run < matrix->runs; run++)
        for (size_t i = 0; i < count; i++)
            matrix_run(&test->matrix, run)[i] = matrix_run(matrix, run)[test->rows[i]->number];
    return 0;
}

/* MIDDLE: test the middles of the runs as well. */
static int permute(const struct value_matrix *matrix, double *p, double *q, double *critical,
                   bool middle)
{
    const struct permutation_runs runs = {.values = matrix->values,
                                          .functions = matrix->width,
                                          .base = matrix->base,
                                          .new = matrix->runs - matrix->base,
                                          .paired = matrix->paired,
                                          .middle = middle};
    return permutation_test(p, q, critical, &runs);
}

static int test_go(struct row_test *test, double floor)
{
    double critical;
    if (permute(&test->matrix, test->p, test->q, &critical, false))
        return -1;
    for (size_t i = 0; i < test->matrix.width; i++) {
        struct compared_row *row = test->rows[i];
        row->p = test->p[i];
        row->q = test->q[i];
        row->least = least_of(error_of(&test->matrix, row, i), critical);
        row->verdict = judge(row, compared_row_change(row), floor);
    }
    return 0;
}

static void test_end(struct row_test *test)
{
    free(test->rows);
    free(test->matrix.values);
    free(test->p);
    free(test->q);
}

/* Test those of ROWS that can matter, as one family.  FLOOR, and the LEAST that matters, are in the
 * event's unit. */
static int test_rows(struct verdict_rows *rows, const struct value_matrix *matrix, double floor,
                     double least, const bool *wanted)
{
    struct row_test test;
    int result = test_begin(&test, matrix, rows, least, wanted);
    result = result || test_go(&test, floor);
    test_end(&test);
    return result;
}

/* ---- Tables ---- */

static int compare(const void *left, const void *right)
{
    const struct compared_row *a = left, *b = right;
    double first = fabs(compared_row_change(a)), second = fabs(compared_row_change(b));
    if (compared_row_differs(a) != compared_row_differs(b))
        return compared_row_differs(a) ? -1 : 1;
    if (first != second)
        return first > second ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* By state: whether its function has others.  One that has none is its function, and was tested as
 * that: to test it again would take as long again. */
static bool *find_others(const struct run_set *set, const struct verdict_rows *states)
{
    bool *wanted = calloc(set->names.frame_count + 1, sizeof *wanted);
    uint32_t *first = calloc(set->names.string_count + 1, sizeof *first); /* + 1 */
    for (size_t i = 0; wanted && first && i < states->count; i++) {
        uint32_t state = states->items[i].number, *seen = &first[set->function_of[state]];
        if (*seen)
            wanted[state] = wanted[*seen - 1] = true;
        else
            *seen = state + 1;
    }
    if (!first) {
        free(wanted);
        wanted = NULL;
    }
    free(first);
    return wanted;
}

/* States that are all of their function take the function's result. */
static int take_functions(struct verdict_rows *states, const struct run_set *set,
                          const struct verdict_rows *functions, const bool *wanted)
{
    const struct compared_row **rows = calloc(set->names.string_count + 1, sizeof *rows);
    for (size_t i = 0; rows && i < functions->count; i++)
        rows[functions->items[i].number] = &functions->items[i];
    for (size_t i = 0; rows && i < states->count; i++) {
        uint32_t number = states->items[i].number;
        if (wanted[number])
            continue;
        states->items[i] = *rows[set->function_of[number]];
        states->items[i].number = number;
    }
    int result = rows ? 0 : -1;
    free(rows);
    return result;
}

static int test_states(struct verdicts *verdicts, const struct run_set *set,
                       const struct value_matrix *matrix, double floor)
{
    struct verdict_rows *states = &verdicts->tables[BY_STATE];
    bool *wanted = find_others(set, states);
    int result = !wanted || test_rows(states, matrix, floor, floor, wanted) ||
                         take_functions(states, set, &verdicts->tables[BY_FUNCTION], wanted)
                     ? -1
                     : 0;
    free(wanted);
    return result;
}

static void add_rows(struct verdict_rows *rows, const struct value_matrix *matrix, bool all)
{
    for (size_t i = 0; i < matrix->width; i++) {
        struct compared_row row = row_of(matrix, i);
        if (row.base > 0 || row.new > 0 || all)
            rows->items[rows->count++] = row;
    }
}

static void sort_rows(struct verdict_rows *rows)
{
    qsort(rows->items, rows->count, sizeof *rows->items, compare);
}

static int test_table(struct verdicts *verdicts, const struct run_set *set,
                      const struct value_matrix *matrix, enum run_table table)
{
    double floor = verdicts->floor * verdicts->middle.base;
    if (!verdicts->enough)
        return 0;
    return table == BY_STATE ? test_states(verdicts, set, matrix, floor)
                             : test_rows(&verdicts->tables[table], matrix, floor, floor, NULL);
}

static int judge_table(struct verdicts *verdicts, const struct run_set *set, enum run_table table)
{
    struct verdict_rows *rows = &verdicts->tables[table];
    struct value_matrix matrix;
    rows->items = calloc(run_set_count(set, table) + 1, sizeof *rows->items);
    int result =
        matrix_make(&matrix, set, run_set_count(set, table), verdicts->paired) || !rows->items ? -1
                                                                                               : 0;
    if (!result) {
        fill(&matrix, set, table, 0);
        if (table == BY_STACK)
            add_callees(&matrix, set);
        add_rows(rows, &matrix, table == BY_STACK);
        result = test_table(verdicts, set, &matrix, table);
        if (!result && table != BY_STACK)
            sort_rows(rows);
    }
    free(matrix.values);
    return result;
}

/* Move the rows of activities out of the functions' rows; their numbers begin at FIRST. */
static int part_activities(struct verdicts *verdicts, size_t first)
{
    struct verdict_rows *functions = &verdicts->tables[BY_FUNCTION];
    struct verdict_rows *activities = &verdicts->tables[BY_ACTIVITY];
    size_t count = 0;
    activities->items = calloc(ACTIVITIES, sizeof *activities->items);
    if (!activities->items)
        return -1;
    for (size_t i = 0; i < functions->count; i++) {
        struct compared_row row = functions->items[i];
        if (row.number < first) {
            functions->items[count++] = row;
            continue;
        }
        row.number -= (uint32_t)first;
        activities->items[activities->count++] = row;
    }
    functions->count = count;
    return 0;
}

/* People read functions and activities side by side, so they are one family. */
static int judge_functions(struct verdicts *verdicts, const struct run_set *set)
{
    struct verdict_rows *rows = &verdicts->tables[BY_FUNCTION];
    size_t first = run_set_count(set, BY_FUNCTION);
    struct value_matrix matrix;
    rows->items = calloc(first + ACTIVITIES, sizeof *rows->items);
    int result =
        matrix_make(&matrix, set, first + ACTIVITIES, verdicts->paired) || !rows->items ? -1 : 0;
    if (!result) {
        fill(&matrix, set, BY_FUNCTION, 0);
        fill(&matrix, set, BY_ACTIVITY, first);
        add_rows(rows, &matrix, false);
        result =
            test_table(verdicts, set, &matrix, BY_FUNCTION) || part_activities(verdicts, first);
    }
    if (!result) {
        sort_rows(rows);
        sort_rows(&verdicts->tables[BY_ACTIVITY]);
    }
    free(matrix.values);
    return result ? -1 : 0;
}

/* ---- The total ---- */

/* VALUES: each pair's difference. */
static void find_differences(double *values, const struct value_matrix *totals)
{
    for (size_t i = 0; i < totals->base; i++)
        values[i] = totals->values[totals->base + i] - totals->values[i];
}

/* ERROR: what the change may be off. */
static int find_middle(struct middle_change *middle, struct welch *error,
                       const struct value_matrix *totals)
{
    double *values = malloc((totals->runs + 1) * sizeof *values);
    if (!values)
        return -1;
    memcpy(values, totals->values, totals->runs * sizeof *values);
    struct run_middle base = run_middle_sort(values, totals->base);
    struct run_middle new = run_middle_sort(values + totals->base, totals->runs - totals->base);
    *middle = (struct middle_change){base.mean, new.mean, new.mean - base.mean};
    *error = welch_of(base.side, new.side);
    if (totals->paired) {
        find_differences(values, totals);
        struct run_middle pairs = run_middle_sort(values, totals->base);
        middle->change = pairs.mean;
        *error = (struct welch){sqrt(pairs.side.square), pairs.side.freedom};
    }
    free(values);
    return 0;
}

/* How many times the usual distance from the middle is far off: more than five deviations. */
static const double far_distance = 8;

/* Whatever the floor is: a run that moves the mean by less is not worth a line. */
static const double least_far_share = 0.005;

/* The COUNT VALUES of a side, of which MIDDLE is the middle. */
static int find_far_runs(struct verdicts *verdicts, const double *values, size_t count,
                         double middle, bool is_new)
{
    double *distances = malloc((count + 1) * sizeof *distances);
    if (!distances)
        return -1;
    for (size_t i = 0; i < count; i++)
        distances[i] = fabs(values[i] - middle);
    run_values_sort(distances, count);
    double usual = distances[count / 2];
    double least = fmax(verdicts->floor, least_far_share) * verdicts->middle.base;
    for (size_t i = 0; i < count && verdicts->far_count < MOST_FAR_RUNS; i++) {
        double distance = fabs(values[i] - middle);
        if (distance > far_distance * usual && distance / (double)count >= least)
            verdicts->far[verdicts->far_count++] = (struct far_run){i + 1, is_new, values[i]};
    }
    free(distances);
    return 0;
}

static int find_all_far_runs(struct verdicts *verdicts, const struct value_matrix *totals)
{
    return find_far_runs(verdicts, totals->values, totals->base, verdicts->middle.base, false) ||
                   find_far_runs(verdicts, totals->values + totals->base,
                                 totals->runs - totals->base, verdicts->middle.new, true)
               ? -1
               : 0;
}

/* Pairs as they are, and by places, in columns of their own. */
enum total_column { AS_IT_IS, BY_PLACE, BY_PLACE_OF_PAIR, TOTAL_COLUMNS };

static int find_columns(struct value_matrix *columns, const double *totals)
{
    double *places = calloc(2 * columns->runs + 1, sizeof *places);
    double *of_pairs = places ? places + columns->runs : NULL;
    int result = !places || run_ranks_find(places, totals, columns->runs) ||
                 run_ranks_of_pairs(of_pairs, totals, columns->base);
    for (size_t i = 0; !result && i < columns->runs; i++) {
        double *run = matrix_run(columns, i);
        run[AS_IT_IS] = totals[i];
        run[BY_PLACE] = places[i];
        run[BY_PLACE_OF_PAIR] = of_pairs[i];
    }
    free(places);
    return result ? -1 : 0;
}

/* One run that is far off hides a change from the test of the means, and not from the test of the
 * runs' ranks.  A pair whose runs are both far off hides a change from the ranks of runs, and not
 * from the ranks of pairs.  As one family they are wrong no more often than the one would be.
 * Those whose change has another direction than CHANGE say nothing of it.  *CRITICAL is that of the
 * means alone: places have no unit. */
static int test_pairs(double *p, double *critical, const struct value_matrix *totals, double change)
{
    struct value_matrix columns = *totals;
    double each[TOTAL_COLUMNS], q[TOTAL_COLUMNS], of_all;
    columns.width = TOTAL_COLUMNS;
    columns.values = calloc(columns.runs * columns.width + 1, sizeof *columns.values);
    int result = !columns.values || find_columns(&columns, totals->values) ||
                 permute(totals, each, q, critical, false) ||
                 permute(&columns, each, q, &of_all, false);
    *p = 1;
    for (size_t i = 0; !result && i < TOTAL_COLUMNS; i++) {
        struct compared_row row = row_of(&columns, i);
        if (compared_row_change(&row) * change > 0)
            *p = fmin(*p, each[i]);
    }
    free(columns.values);
    return result ? -1 : 0;
}

/* The middle of fewer runs has a spread of four runs or fewer, which is too often too small. */
enum { LEAST_RUNS_OF_MIDDLE = 7 };

/* A rank says nothing of how far a run is from the others.  So where the few runs of one side vary
 * more than those of the other, ranks find a difference that is none.  The middles don't. */
static int test_sides(double *p, double *critical, const struct value_matrix *totals, double change)
{
    struct compared_row means = row_of(totals, 0);
    double q;
    bool middle =
        totals->base >= LEAST_RUNS_OF_MIDDLE && totals->runs - totals->base >= LEAST_RUNS_OF_MIDDLE;
    if (permute(totals, p, &q, critical, middle))
        return -1;
    if (!middle && compared_row_change(&means) * change < 0)
        *p = 1;
    return 0;
}

static int test_total(struct verdicts *verdicts, const struct value_matrix *totals,
                      struct welch middle_error)
{
    struct compared_row *total = &verdicts->total;
    double critical, change = verdicts->middle.change;
    double floor = verdicts->floor * verdicts->middle.base;
    if ((totals->paired ? test_pairs : test_sides)(&total->p, &critical, totals, change))
        return -1;
    total->q = total->p; /* it is one question */
    total->least = least_of(error_of(totals, total, 0), critical);
    if (verdicts->far_count) /* these alone make it so large */
        total->least = fmin(total->least, least_of(middle_error, critical));
    total->verdict = judge(total, change, floor);
    return 0;
}

static int judge_total(struct verdicts *verdicts, const struct run_set *set)
{
    struct value_matrix matrix, totals = {0};
    struct welch error;
    int result = matrix_make(&matrix, set, ACTIVITIES, verdicts->paired) ||
                         matrix_make(&totals, set, 1, verdicts->paired)
                     ? -1
                     : 0;
    if (!result) {
        fill(&matrix, set, BY_ACTIVITY, 0);
        sum_runs(&totals, &matrix);
        verdicts->total = row_of(&totals, 0);
        result = find_middle(&verdicts->middle, &error, &totals);
        if (!result && verdicts->enough)
            result = find_all_far_runs(verdicts, &totals) || test_total(verdicts, &totals, error)
                         ? -1
                         : 0;
    }
    free(matrix.values);
    free(totals.values);
    return result;
}

bool verdicts_regress(const struct verdicts *verdicts, double share)
{
    return verdicts->total.verdict == VERDICT_SLOWER &&
           verdicts->total.p <= fmax(GATE_LEVEL, verdicts->least_p) &&
           verdicts->middle.change >= share * verdicts->middle.base;
}

int verdicts_find(struct verdicts *verdicts, const struct run_set *set, bool paired, double floor)
{
    const struct permutation_runs runs = {.base = set->base, .new = set->new, .paired = paired};
    size_t least = paired ? LEAST_PAIRS : LEAST_RUNS;
    *verdicts = (struct verdicts){.floor = floor, .paired = paired};
    verdicts->enough = set->base >= least && set->new >= least;
    verdicts->least_p = permutation_least_p(&runs);
    int result = judge_total(verdicts, set) || judge_functions(verdicts, set) ||
                 judge_table(verdicts, set, BY_STATE) || judge_table(verdicts, set, BY_STACK);
    if (!result && set->lines_of)
        result = judge_table(verdicts, set, BY_LINE) || judge_table(verdicts, set, BY_INSTRUCTION);
    return result ? -1 : 0;
}

void verdicts_free(struct verdicts *verdicts)
{
    for (int table = 0; table < RUN_TABLES; table++)
        free(verdicts->tables[table].items);
}
