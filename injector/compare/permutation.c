/* See permutation.h.
 *
 * Each function's values are centred and scaled to a sum of squares of 1, which no labelling
 * changes.  Then the sums of the base's runs, and of their squares, give Welch's t and its degrees
 * of freedom (paired: the sum of the differences, each with its sign).  With few runs on a side, t
 * has the longer tails: z takes them off.  So the scores of different functions and labellings can
 * be counted together.  The share of all rounds' scores that are as large says how many functions
 * would reach a score by chance.
 *
 * In the labellings, the runs of a side that varies more are on both sides.  Its tails are shorter
 * there than they are in truth: so no p is less than that of z by itself.  If many functions vary
 * more on one side, each one's runs are relabelled with the same spread on both. */
#include "injector/compare/permutation.h"

#include "injector/compare/run_middle.h"

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

/* How many functions have a score of each size: in all rounds, and as it was observed. */
struct score_counts {
    uint64_t *by_chance, *observed;
    double bins_each; /* a bin has the scores from its number on, in these */
};

struct scaled_rows {
    double *values; /* row by row, each WIDTH wide and then as wide with its squares */
    size_t width;   /* a multiple of BLOCK; 0 behind the last */
    size_t rows;
    uint32_t *orders; /* by function: its rows, the smallest value first; NULL: not wanted */
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
    for (size_t row = 0; row < rows->rows; row++) {
        double *value = rows->values + row * 2 * rows->width + function;
        *value = (value_of(runs, row, function) - mean) / sqrt(squares);
        value[rows->width] = *value * *value;
    }
}

static int compare_rows(const void *left, const void *right, void *context)
{
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    const struct scaled_rows *rows = context; /* of the function at hand */
    double first = rows->values[a * 2 * rows->width], second = rows->values[b * 2 * rows->width];
    if (first != second)
        return first < second ? -1 : 1;
    return a < b ? -1 : a > b;
}

static void find_order(const struct scaled_rows *rows, size_t function)
{
    uint32_t *order = rows->orders + function * rows->rows;
    struct scaled_rows own = *rows;
    own.values += function;
    for (size_t i = 0; i < rows->rows; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, rows->rows, sizeof *order, compare_rows, &own);
}

static int make_rows(struct scaled_rows *rows, const struct permutation_runs *runs)
{
    rows->rows = runs->paired ? runs->base : runs->base + runs->new;
    rows->width = (runs->functions + BLOCK - 1) / BLOCK * BLOCK;
    rows->values = calloc(rows->rows * rows->width * 2 + 1, sizeof *rows->values);
    if (runs->middle)
        rows->orders = calloc(rows->rows * runs->functions + 1, sizeof *rows->orders);
    if (!rows->values || (runs->middle && !rows->orders))
        return -1;
    for (size_t i = 0; i < runs->functions; i++) {
        scale(rows, runs, i);
        if (runs->middle)
            find_order(rows, i);
    }
    return 0;
}

/* ---- Sides that vary differently ---- */

struct spread {
    double mean, squares; /* of the distances from the mean */
};

static struct spread spread_of(const struct permutation_runs *runs, size_t function, bool is_new)
{
    size_t first = is_new ? runs->base : 0, count = is_new ? runs->new : runs->base;
    const double *values = runs->values + first * runs->functions + function;
    struct spread spread = {0};
    for (size_t i = 0; i < count; i++)
        spread.mean += values[i * runs->functions] / (double)count;
    for (size_t i = 0; i < count; i++)
        spread.squares += pow(values[i * runs->functions] - spread.mean, 2);
    return spread;
}

static bool varies(struct spread spread)
{
    return sqrt(spread.squares) > fabs(spread.mean) * 1e-12; /* the rest is rounding */
}

/* Of one spread on both sides, the logarithm of both squares' quotient is about normal, with this
 * deviation, if the squares are divided by the runs less 2. */
static bool is_function_uneven(const struct permutation_runs *runs, struct spread base,
                               struct spread new)
{
    static const double most_deviations = 2;
    double of_base = (double)runs->base - 2, of_new = (double)runs->new - 2;
    return varies(base) && varies(new) &&
           fabs(log(base.squares / of_base / (new.squares / of_new))) >
               most_deviations * sqrt(2 / of_base + 2 / of_new);
}

/* How many functions vary more on one side.  0 if they have a small part of the time: then they may
 * be so by chance.  One function by itself has z's own distribution. */
static size_t count_uneven(const struct permutation_runs *runs)
{
    static const double least_part = 0.2;
    double uneven = 0, all = 0;
    size_t count = 0;
    if (runs->paired || runs->functions < 2 || runs->base < 3 || runs->new < 3)
        return 0;
    for (size_t i = 0; i < runs->functions; i++) {
        struct spread base = spread_of(runs, i, false), new = spread_of(runs, i, true);
        double size = fabs(base.mean) + fabs(new.mean);
        all += size;
        if (!is_function_uneven(runs, base, new))
            continue;
        uneven += size;
        count++;
    }
    return uneven > all * least_part ? count : 0;
}

/* The distance of each of a function's runs from its side's mean, in that side's spread: what is
 * left if the sides have nothing but chance in common.  A side that doesn't vary can't be made to.
 */
static void even_out(double *values, const struct permutation_runs *runs, size_t function)
{
    const struct spread sides[] = {spread_of(runs, function, false),
                                   spread_of(runs, function, true)};
    const size_t counts[] = {runs->base, runs->new};
    bool both = varies(sides[0]) && varies(sides[1]);
    for (size_t row = 0; row < runs->base + runs->new; row++) {
        size_t at = row * runs->functions + function, side = row >= runs->base;
        values[at] = runs->values[at];
        if (both)
            values[at] = (values[at] - sides[side].mean) /
                         sqrt(sides[side].squares / (double)(counts[side] - 1));
    }
}

static int make_even_rows(struct scaled_rows *rows, const struct permutation_runs *runs)
{
    double *values = malloc(((runs->base + runs->new) * runs->functions + 1) * sizeof *values);
    struct permutation_runs even = *runs;
    even.values = values;
    for (size_t i = 0; values && i < runs->functions; i++)
        even_out(values, runs, i);
    int result = values ? make_rows(rows, &even) : -1;
    free(values);
    return result;
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

/* ---- Statistics ---- */

/* A spread below this share of all is rounding. */
static const double least_square = 1e-10;

/* A difference of two means: its z, with its sign, and its standard error. */
struct difference {
    double z, error;
};

static struct difference difference_of(double size, struct welch_side a, struct welch_side b)
{
    a.square += least_square;
    b.square += least_square;
    struct welch welch = welch_of(a, b);
    return (struct difference){copysign(welch_z(size / welch.error, welch.freedom), size),
                               welch.error};
}

static struct welch_side side_of(double sum, double squares, double count)
{
    return (struct welch_side){fmax(squares - sum * sum / count, 0) / (count - 1) / count,
                               count - 1};
}

/* Of the base's SUM and SQUARES; all runs' are 0 and 1, or both 0. */
static struct difference of_means(const struct permutation_runs *runs, double sum, double squares)
{
    double base = (double)runs->base, new = (double)runs->new;
    if (runs->paired) {
        double share = fmin(sum * sum / base, 1 - least_square);
        return (struct difference){
            copysign(welch_z(sqrt(share / (1 - share) * (base - 1)), base - 1), sum), 0};
    }
    return difference_of(sum / base + sum / new, side_of(sum, squares, base),
                         side_of(-sum, sum == 0 && squares == 0 ? 0 : 1 - squares, new));
}

/* By the middle of both sides.  SPACE: for a number of each row. */
static struct difference of_middles(const struct scaled_rows *rows,
                                    const struct permutation_runs *runs, const signed char *labels,
                                    size_t function, double *space)
{
    const uint32_t *order = rows->orders + function * rows->rows;
    size_t places[2] = {runs->base, 0}; /* by label: the base's are first */
    for (size_t i = 0; i < rows->rows; i++) {
        bool is_base = labels[order[i]] == 1;
        space[places[is_base]++] = rows->values[order[i] * 2 * rows->width + function];
    }
    struct run_middle base = run_middle_of(space, runs->base);
    struct run_middle new = run_middle_of(space + runs->base, runs->new);
    return difference_of(base.mean - new.mean, base.side, new.side);
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
                *chosen++ = rows->values + row * 2 * rows->width + start;
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

/* SUMS: of a block of functions, in a round, from FIRST on. */
static void add_up(double *sums, const double *const *chosen, size_t first)
{
    for (size_t at = 0; at < BLOCK; at += LANES) {
        vector added[VECTORS], subtracted[VECTORS];
        add_rows(subtracted, add_rows(added, chosen, first + at), first + at);
        for (size_t i = 0; i < VECTORS; i++)
            ((vector *)(sums + at))[i] = added[i] - subtracted[i];
    }
}

/* A round's labels, and what is needed to go through them. */
struct round {
    const struct scaled_rows *rows;
    bool by_sums; /* |t| grows with |sum| alone */
    const struct permutation_runs *runs;
    const signed char *labels;
    const double **chosen;
    double *space;
};

/* The middles stand for the means where their standard error is less than this share of the means':
 * a run is far off.  The larger one of both would have longer tails everywhere, and a change would
 * have to be larger to be seen. */
static const double surer = 0.55;

/* The |z| that counts of function NUMBER, whose means differ by MEANS.  If its middles say the
 * opposite, they stand. */
static double counting_z(const struct round *round, size_t number, struct difference means)
{
    if (!round->runs->middle)
        return fabs(means.z);
    struct difference middles =
        of_middles(round->rows, round->runs, round->labels, number, round->space);
    bool stands = middles.z * means.z < 0 || middles.error < surer * means.error;
    return fabs(stands ? middles.z : means.z);
}

/* Whether |t| grows with |sum| alone, by the same rule for all functions and labellings: then a
 * round is additions.  Of as many runs on both sides Welch's t is that of one common deviation.
 * UNEVEN: the degrees of freedom count as well. */
static bool is_by_sums(const struct permutation_runs *runs, bool uneven)
{
    return runs->paired || (runs->base == runs->new && !runs->middle && !uneven);
}

/* SCORES: of COUNT functions from START on, in ROUND: |sum| or |z|.  Z: their |z|; or NULL. */
static void find_scores(double scores[BLOCK], double *z, const struct round *round, size_t start,
                        size_t count)
{
    double sums[BLOCK], squares[BLOCK] = {0};
    bool by_sums = round->by_sums;
    choose_rows(round->chosen, round->rows, round->labels, start);
    add_up(sums, round->chosen, 0);
    if ((!by_sums || z) && !round->runs->paired)
        add_up(squares, round->chosen, round->rows->width);
    for (size_t i = 0; i < BLOCK; i++)
        scores[i] = by_sums ? fabs(sums[i]) : 0;
    for (size_t i = 0; i < count && (!by_sums || z); i++) {
        double one = counting_z(round, start + i, of_means(round->runs, sums[i], squares[i]));
        scores[i] = by_sums ? scores[i] : one;
        if (z)
            z[i] = one;
    }
}

static double largest_of(const double *scores)
{
    double largest = 0;
    for (size_t i = 0; i < BLOCK; i++)
        largest = scores[i] > largest ? scores[i] : largest;
    return largest;
}

static size_t bin_of(const struct score_counts *counts, double score)
{
    double bin = score * counts->bins_each;
    return bin < BINS - 1 ? (size_t)bin : BINS - 1;
}

/* P: the observed scores.  Z: the observed z, of OBSERVED.  ROUND has the rows that are relabelled.
 */
static void go_through(double *p, double *z, struct rounds *rounds, struct score_counts *counts,
                       const struct scaled_rows *observed, struct round *round)
{
    const struct scaled_rows *relabelled = round->rows;
    size_t functions = round->runs->functions;
    for (size_t start = 0; start < round->rows->width; start += BLOCK) {
        size_t count = functions - start < BLOCK ? functions - start : BLOCK;
        for (size_t i = 0; i < rounds->count; i++) {
            double scores[BLOCK];
            round->labels = rounds->labels + i * rounds->rows;
            round->rows = i ? relabelled : observed;
            find_scores(scores, i ? NULL : z + start, round, start, count);
            rounds->largest[i] = fmax(rounds->largest[i], largest_of(scores));
            for (size_t k = 0; k < count; k++)
                counts->by_chance[bin_of(counts, scores[k])]++;
            if (i == 0)
                memcpy(p + start, scores, count * sizeof *scores);
        }
    }
    for (size_t i = 0; i < functions; i++)
        counts->observed[bin_of(counts, p[i])]++;
}

/* ---- What follows ---- */

/* Scaled values add up to less than the root of their number; the least spread makes the largest t.
 */
static int make_counts(struct score_counts *counts, size_t rows, bool by_sums)
{
    double most = by_sums ? sqrt((double)rows) : welch_z(sqrt(1 / least_square), (double)rows);
    counts->by_chance = calloc(BINS, sizeof *counts->by_chance);
    counts->observed = calloc(BINS, sizeof *counts->observed);
    counts->bins_each = BINS / (most + 1);
    return counts->by_chance && counts->observed ? 0 : -1;
}

/* The share for each bin is taken from the functions whose score is in it or in a larger bin.  That
 * is the share that would be there by chance.  If a smaller bin has a smaller share, that one is
 * used.  UNEVEN: of so many functions at least those are there by chance that z's own distribution
 * has; 0: the scores are no z. */
static void find_shares(double *shares, const struct score_counts *counts, size_t rounds,
                        size_t uneven)
{
    uint64_t chance = 0, observed = 0;
    for (size_t i = BINS; i-- > 0;) {
        chance += counts->by_chance[i];
        observed += counts->observed[i];
        double all = fmax((double)chance / (double)rounds,
                          (double)uneven * erfc((double)i / counts->bins_each * M_SQRT1_2));
        shares[i] = observed ? all / (double)observed : INFINITY;
    }
    double least = 1;
    for (size_t i = 0; i < BINS; i++)
        shares[i] = least = fmin(least, shares[i]);
}

/* P holds the observed scores. */
static int find_q(double *q, const double *p, const struct score_counts *counts, size_t rounds,
                  size_t functions, size_t uneven)
{
    double *shares = malloc(BINS * sizeof *shares);
    if (!shares)
        return -1;
    find_shares(shares, counts, rounds, uneven);
    for (size_t i = 0; i < functions; i++)
        q[i] = shares[bin_of(counts, p[i])];
    free(shares);
    return 0;
}

/* The probability of Z by its own distribution.  Middles that seem sure are so by chance at times:
 * of 7 to 40 runs, one side with ten times the noise, up to 1.27 times as many reach a z of 5 %. */
static double normal_share(const struct permutation_runs *runs, double z)
{
    return fmin((runs->middle ? 1.12 : 1) * erfc(z * M_SQRT1_2), 1);
}

/* The share of ROUNDS, in order, that reach SCORE; equal ones may differ by rounding. */
static double share_reaching(const struct rounds *rounds, double score)
{
    size_t low = 0, high = rounds->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rounds->largest[middle] >= score - 1e-6)
            high = middle;
        else
            low = middle + 1;
    }
    return (double)(rounds->count - low) / (double)rounds->count;
}

/* The |t| of a sum, of one common deviation. */
static double t_of(double sum, const struct permutation_runs *runs, double rows)
{
    double each = runs->paired ? 1 / rows : 1 / (double)runs->base + 1 / (double)runs->new;
    double share = fmin(sum * sum * each, 1 - least_square);
    return sqrt(share / (1 - share) * (rows - (runs->paired ? 1 : 2)));
}

/* The least |z| that 5 % of ROUNDS, in order, reach, or fewer.  With few labellings each is more
 * than a percent of all, and the score at 95 % may not be significant yet.  If none is, the
 * largest. */
static double critical_z(const struct rounds *rounds, const struct permutation_runs *runs,
                         bool by_sums)
{
    static const double step = 0.001;
    double rows = (double)rounds->rows;
    size_t at = rounds->count * 95 / 100;
    while (at + 1 < rounds->count && share_reaching(rounds, rounds->largest[at]) > level)
        at++;
    double z = rounds->largest[at];
    if (by_sums)
        z = welch_z(t_of(z, runs, rows), rows - (runs->paired ? 1 : 2));
    while (normal_share(runs, z) > level)
        z += step;
    return z;
}

/* As many runs on both sides: the opposite of each labelling has the same |z|. */
double permutation_least_p(const struct permutation_runs *runs)
{
    size_t rows = runs->paired ? runs->base : runs->base + runs->new;
    return (runs->paired || runs->base == runs->new ? 2.0 : 1.0) / (double)labellings(runs, rows);
}

static void free_rows(struct scaled_rows *rows)
{
    free(rows->values);
    free(rows->orders);
}

int permutation_test(double *p, double *q, double *critical, const struct permutation_runs *runs)
{
    struct scaled_rows rows = {0}, even = {0};
    struct rounds rounds = {0};
    struct score_counts counts = {0};
    size_t uneven = count_uneven(runs);
    struct round round = {
        .rows = uneven ? &even : &rows, .by_sums = is_by_sums(runs, uneven), .runs = runs};
    int result = make_rows(&rows, runs) || (uneven && make_even_rows(&even, runs)) ||
                         make_rounds(&rounds, runs, rows.rows) ||
                         make_counts(&counts, rows.rows, round.by_sums)
                     ? -1
                     : 0;
    round.chosen = malloc((rows.rows + 2) * sizeof *round.chosen);
    round.space = malloc((rows.rows + 1) * sizeof *round.space);
    double *z = malloc((runs->functions + 1) * sizeof *z); /* as it was observed */
    if (!round.chosen || !round.space || !z)
        result = -1;
    if (!result) {
        go_through(p, z, &rounds, &counts, &rows, &round);
        result = find_q(q, p, &counts, rounds.count, runs->functions, uneven);
        run_values_sort(rounds.largest, rounds.count);
        for (size_t i = 0; i < runs->functions; i++) {
            double share = normal_share(runs, z[i]);
            q[i] = fmax(q[i], share);
            p[i] = fmax(share_reaching(&rounds, p[i]), share);
        }
        *critical = critical_z(&rounds, runs, round.by_sums);
    }
    free(round.chosen);
    free(round.space);
    free(z);
    free_rows(&rows);
    free_rows(&even);
    free(rounds.labels);
    free(rounds.largest);
    free(counts.by_chance);
    free(counts.observed);
    return result;
}
