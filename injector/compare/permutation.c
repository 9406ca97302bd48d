/* See permutation.h.
 *
 * Each function's values are centred and scaled to a sum of squares of 1, which no labelling
 * changes.  Then |t| grows with |sum over the base's runs| alone (paired: |sum of the differences,
 * each with its sign|), by the same rule for all functions.  So a round is additions and a maximum,
 * and sums of different functions can be counted together.  The share of all rounds' sums that are
 * as large says how many functions would reach a sum by chance. */
#include "injector/compare/permutation.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The accepted probability of a result by mere chance. */
static const double level = 0.05;

enum { ROUNDS = 10000, BLOCK = 64, ENUMERABLE_RUNS = 40, BINS = 1 << 14 };

struct rounds {
    signed char *labels; /* a round's: one for each row; 1, 0 or -1: how often it is added */
    double *largest;
    size_t count, rows;
};

/* How many functions have a sum of each size: in all rounds, and as it was observed. */
struct sum_counts {
    uint64_t *by_chance, *observed;
    double bins_each; /* a bin has the sums from its number on, in these */
};

struct scaled_rows {
    double *values; /* row by row, each WIDTH wide: a multiple of BLOCK, 0 behind the last */
    size_t width, rows;
};

/* ---- Rows ---- */

static double value_of(const struct permutation_runs *runs, size_t row, size_t function)
{
    double value = runs->values[row * runs->functions + function];
    if (runs->paired)
        value -= runs->values[(runs->base + row) * runs->functions + function];
    return value;
}

static void scale(struct scaled_rows *rows, const struct permutation_runs *runs, size_t function)
{
    double mean = 0, squares = 0, size = 0;
    for (size_t row = 0; row < rows->rows; row++) {
        mean += value_of(runs, row, function) / (double)rows->rows;
        size = fmax(size, fabs(value_of(runs, row, function)));
    }
    if (runs->paired)
        mean = 0;
    for (size_t row = 0; row < rows->rows; row++)
        squares += pow(value_of(runs, row, function) - mean, 2);
    if (sqrt(squares) <= size * 1e-12) /* all alike: the rest is rounding */
        return;
    for (size_t row = 0; row < rows->rows; row++)
        rows->values[row * rows->width + function] =
            (value_of(runs, row, function) - mean) / sqrt(squares);
}

static int make_rows(struct scaled_rows *rows, const struct permutation_runs *runs)
{
    rows->rows = runs->paired ? runs->base : runs->base + runs->new;
    rows->width = (runs->functions + BLOCK - 1) / BLOCK * BLOCK;
    rows->values = calloc(rows->rows * rows->width + 1, sizeof *rows->values);
    for (size_t i = 0; rows->values && i < runs->functions; i++)
        scale(rows, runs, i);
    return rows->values ? 0 : -1;
}

/* ---- Labellings ---- */

/* How many there are; more than ROUNDS: too many to go through. */
static size_t labellings(const struct permutation_runs *runs, size_t rows)
{
    size_t count = 1;
    if (rows > ENUMERABLE_RUNS)
        return ROUNDS + 1;
    for (size_t i = 1; i <= (runs->paired ? rows : runs->base) && count <= ROUNDS; i++)
        count = runs->paired ? count * 2 : count * (rows - runs->base + i) / i;
    return count <= ROUNDS ? count : ROUNDS + 1;
}

static void label_by_mask(signed char *labels, size_t rows, uint64_t mask, bool paired)
{
    for (size_t i = 0; i < rows; i++)
        labels[i] = (signed char)(mask >> i & 1 ? 1 : paired ? -1 : 0);
}

/* The next larger number with as many bits set. */
static uint64_t next_choice(uint64_t mask)
{
    uint64_t low = mask & -mask, high = mask + low;
    return high | (((mask ^ high) >> 2) / low);
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15; /* splitmix64 */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* TO: FROM's labels in another order, or with other signs. */
static void label_by_chance(signed char *to, const signed char *from, size_t rows, bool paired,
                            uint64_t *state)
{
    memcpy(to, from, rows);
    for (size_t i = rows; i-- > 0;) {
        uint64_t number = next_random(state);
        size_t other = number % (i + 1);
        signed char label = to[i];
        if (paired) {
            to[i] = (signed char)(number >> 63 ? 1 : -1);
        } else {
            to[i] = to[other];
            to[other] = label;
        }
    }
}

/* Round 0 has the observed labels. */
static int make_rounds(struct rounds *rounds, const struct permutation_runs *runs, size_t rows)
{
    size_t all = labellings(runs, rows);
    uint64_t state = 1, mask = (UINT64_C(1) << (runs->base < 63 ? runs->base : 63)) - 1;
    rounds->rows = rows;
    rounds->count = all <= ROUNDS ? all : ROUNDS;
    rounds->labels = calloc(rounds->count * rows + 1, 1);
    rounds->largest = calloc(rounds->count, sizeof *rounds->largest);
    if (!rounds->labels || !rounds->largest)
        return -1;
    for (size_t i = 0; i < rows; i++)
        rounds->labels[i] = runs->paired || i < runs->base;
    for (size_t i = 1; i < rounds->count; i++) {
        signed char *labels = rounds->labels + i * rows;
        mask = runs->paired ? mask - 1 : next_choice(mask);
        if (all <= ROUNDS)
            label_by_mask(labels, rows, mask, runs->paired);
        else
            label_by_chance(labels, rounds->labels, rows, runs->paired, &state);
    }
    return 0;
}

/* ---- Rounds ---- */

/* Two values at once. */
typedef double vector __attribute__((vector_size(2 * sizeof(double)), aligned(8), may_alias));

enum { VECTORS = 4, LANES = 2 * VECTORS };

/* Choose those of ROWS that a round adds, then those that it subtracts, with a NULL behind each. */
static void choose_rows(const double **chosen, const struct scaled_rows *rows,
                        const signed char *labels, size_t start)
{
    for (int label = 1; label >= -1; label -= 2) {
        for (size_t row = 0; row < rows->rows; row++)
            if (labels[row] == label)
                *chosen++ = rows->values + row * rows->width + start;
        *chosen++ = NULL;
    }
}

/* The sums of LANES functions, of the rows up to a NULL: in registers, each value is read once.
 * Returns the place behind the NULL. */
static const double *const *add_rows(vector sums[VECTORS], const double *const *row, size_t at)
{
    vector a = {0}, b = {0}, c = {0}, d = {0};
    for (; *row; row++) {
        const vector *values = (const vector *)(*row + at);
        a += values[0];
        b += values[1];
        c += values[2];
        d += values[3];
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
    return row + 1;
}

/* SUMS: of a block of functions, in a round; of the opposite labels they are the opposite. */
static void add_up(double *sums, const double *const *chosen)
{
    for (size_t at = 0; at < BLOCK; at += LANES) {
        vector added[VECTORS], subtracted[VECTORS];
        add_rows(subtracted, add_rows(added, chosen, at), at);
        for (size_t i = 0; i < VECTORS; i++)
            ((vector *)(sums + at))[i] = added[i] - subtracted[i];
    }
}

static double largest_of(const double *sums)
{
    double largest = 0;
    for (size_t i = 0; i < BLOCK; i++)
        largest = fabs(sums[i]) > largest ? fabs(sums[i]) : largest;
    return largest;
}

static size_t bin_of(const struct sum_counts *counts, double sum)
{
    double bin = fabs(sum) * counts->bins_each;
    return bin < BINS - 1 ? (size_t)bin : BINS - 1;
}

/* Count the sums of the COUNT functions of a block. */
static void count_sums(struct sum_counts *counts, const double *sums, size_t count)
{
    for (size_t i = 0; i < count; i++)
        counts->by_chance[bin_of(counts, sums[i])]++;
}

/* P: the observed sums. */
static void go_through(double *p, struct rounds *rounds, struct sum_counts *counts,
                       const struct scaled_rows *rows, const double **chosen, size_t functions)
{
    double sums[BLOCK];
    for (size_t start = 0; start < rows->width; start += BLOCK) {
        size_t count = functions - start < BLOCK ? functions - start : BLOCK;
        for (size_t i = 0; i < rounds->count; i++) {
            choose_rows(chosen, rows, rounds->labels + i * rounds->rows, start);
            add_up(sums, chosen);
            rounds->largest[i] = fmax(rounds->largest[i], largest_of(sums));
            count_sums(counts, sums, count);
            for (size_t k = 0; i == 0 && k < count; k++)
                p[start + k] = fabs(sums[k]);
        }
    }
    for (size_t i = 0; i < functions; i++)
        counts->observed[bin_of(counts, p[i])]++;
}

/* ---- What follows ---- */

/* Scaled values add up to less than the root of their number. */
static int make_counts(struct sum_counts *counts, size_t rows)
{
    counts->by_chance = calloc(BINS, sizeof *counts->by_chance);
    counts->observed = calloc(BINS, sizeof *counts->observed);
    counts->bins_each = BINS / (sqrt((double)rows) + 1);
    return counts->by_chance && counts->observed ? 0 : -1;
}

/* The share for each bin is taken from the functions whose sum is in it or in a larger bin.  That
 * is the share that would be there by chance.  If a smaller bin has a smaller share, that one is
 * used. */
static void find_shares(double *shares, const struct sum_counts *counts, size_t rounds)
{
    uint64_t chance = 0, observed = 0;
    for (size_t i = BINS; i-- > 0;) {
        chance += counts->by_chance[i];
        observed += counts->observed[i];
        shares[i] = observed ? (double)chance / (double)rounds / (double)observed : INFINITY;
    }
    double least = 1;
    for (size_t i = 0; i < BINS; i++)
        shares[i] = least = fmin(least, shares[i]);
}

/* P holds the observed sums. */
static int find_q(double *q, const double *p, const struct sum_counts *counts, size_t rounds,
                  size_t functions)
{
    double *shares = malloc(BINS * sizeof *shares);
    if (!shares)
        return -1;
    find_shares(shares, counts, rounds);
    for (size_t i = 0; i < functions; i++)
        q[i] = shares[bin_of(counts, p[i])];
    free(shares);
    return 0;
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* The share of ROUNDS, in order, that reach SUM; equal ones may differ by rounding. */
static double share_reaching(const struct rounds *rounds, double sum)
{
    size_t low = 0, high = rounds->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rounds->largest[middle] >= sum - 1e-9)
            high = middle;
        else
            low = middle + 1;
    }
    return (double)(rounds->count - low) / (double)rounds->count;
}

/* The least sum that 5 % of ROUNDS, in order, reach, or fewer.  With few labellings each is more
 * than a percent of all, and the sum at 95 % may not be significant yet.  If none is, the
 * largest. */
static double critical_sum(const struct rounds *rounds)
{
    size_t at = rounds->count * 95 / 100;
    while (at + 1 < rounds->count && share_reaching(rounds, rounds->largest[at]) > level)
        at++;
    return rounds->largest[at];
}

static double t_of(double sum, const struct permutation_runs *runs, size_t rows)
{
    double each = runs->paired ? 1 / (double)rows : 1 / (double)runs->base + 1 / (double)runs->new;
    double share = fmin(sum * sum * each, 1 - 1e-12);
    return sqrt(share / (1 - share) * (double)(rows - (runs->paired ? 1 : 2)));
}

int permutation_test(double *p, double *q, double *critical, const struct permutation_runs *runs)
{
    struct scaled_rows rows = {0};
    struct rounds rounds = {0};
    struct sum_counts counts = {0};
    int result = make_rows(&rows, runs) || make_rounds(&rounds, runs, rows.rows) ||
                         make_counts(&counts, rows.rows)
                     ? -1
                     : 0;
    const double **chosen = malloc((rows.rows + 2) * sizeof *chosen);
    if (!chosen)
        result = -1;
    if (!result) {
        go_through(p, &rounds, &counts, &rows, chosen, runs->functions);
        result = find_q(q, p, &counts, rounds.count, runs->functions);
        qsort(rounds.largest, rounds.count, sizeof *rounds.largest, compare);
        for (size_t i = 0; i < runs->functions; i++)
            p[i] = share_reaching(&rounds, p[i]);
        *critical = t_of(critical_sum(&rounds), runs, rows.rows);
    }
    free(chosen);
    free(rows.values);
    free(rounds.labels);
    free(rounds.largest);
    free(counts.by_chance);
    free(counts.observed);
    return result;
}
