/* The permutation test against one by brute force, and its false alarms where nothing is there. */
#include "injector/compare/permutation.h"

#include "tests/unit/random_numbers.h"
#include "tests/unit/scratch.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { SIDE = 4, RUNS = 2 * SIDE, FUNCTIONS = 3 };

/* |t| of one function by the book, where the runs of MASK are the base. */
static double t_by_the_book(const double *values, size_t function, unsigned mask)
{
    double mean[2] = {0}, squares = 0;
    for (size_t i = 0; i < RUNS; i++)
        mean[mask >> i & 1] += values[i * FUNCTIONS + function] / SIDE;
    for (size_t i = 0; i < RUNS; i++) {
        double off = values[i * FUNCTIONS + function] - mean[mask >> i & 1];
        squares += off * off;
    }
    return fabs(mean[0] - mean[1]) / sqrt(squares / (RUNS - 2) * 2 / SIDE);
}

/* |z| of one function by the book (Welch, Wallace), where the runs of MASK are the base. */
static double z_by_the_book(const double *values, size_t function, unsigned mask)
{
    double mean[2] = {0}, error[2] = {0};
    for (size_t i = 0; i < RUNS; i++)
        mean[mask >> i & 1] += values[i * FUNCTIONS + function] / SIDE;
    for (size_t i = 0; i < RUNS; i++) {
        double off = values[i * FUNCTIONS + function] - mean[mask >> i & 1];
        error[mask >> i & 1] += off * off / (SIDE - 1) / SIDE;
    }
    double t = (mean[0] - mean[1]) / sqrt(error[0] + error[1]);
    double freedom =
        pow(error[0] + error[1], 2) / ((error[0] * error[0] + error[1] * error[1]) / (SIDE - 1));
    return (8 * freedom + 1) / (8 * freedom + 3) * sqrt(freedom * log(1 + t * t / freedom));
}

/* At least the probability of z by itself.  Both sides have the same spread. */
static double p_by_the_book(const double *values, size_t function)
{
    size_t all = 0, reach = 0;
    double observed = t_by_the_book(values, function, (1 << SIDE) - 1);
    for (unsigned mask = 0; mask < 1 << RUNS; mask++) {
        double largest = 0;
        if (__builtin_popcount(mask) != SIDE)
            continue;
        for (size_t i = 0; i < FUNCTIONS; i++)
            largest = fmax(largest, t_by_the_book(values, i, mask));
        all++;
        reach += largest >= observed * (1 - 1e-9);
    }
    assert_int_equal(all, 70);
    return fmax((double)reach / (double)all,
                erfc(z_by_the_book(values, function, (1 << SIDE) - 1) / sqrt(2)));
}

/* Move each side's runs of each function to MEAN[side], with a deviation of SPREAD[side]. */
static void set_sides(double *values, const double mean[2], const double spread[2])
{
    for (size_t i = 0; i < FUNCTIONS; i++)
        for (size_t side = 0; side < 2; side++) {
            double *first = values + side * SIDE * FUNCTIONS + i, sum = 0, squares = 0;
            for (size_t run = 0; run < SIDE; run++)
                sum += first[run * FUNCTIONS];
            for (size_t run = 0; run < SIDE; run++)
                squares += pow(first[run * FUNCTIONS] - sum / SIDE, 2);
            for (size_t run = 0; run < SIDE; run++)
                first[run * FUNCTIONS] = mean[side] + (first[run * FUNCTIONS] - sum / SIDE) *
                                                          spread[side] / sqrt(squares / (SIDE - 1));
        }
}

/* One side varies more: the labellings are of the same runs without a difference of the sides. */
static double p_of_uneven_sides(const double *values, size_t function)
{
    const unsigned observed = (1 << SIDE) - 1;
    double even[RUNS * FUNCTIONS], z = z_by_the_book(values, function, observed);
    size_t reach = 0;
    memcpy(even, values, sizeof even);
    set_sides(even, (double[2]){0, 0}, (double[2]){1, 1});
    for (unsigned mask = 0; mask < 1 << RUNS; mask++) {
        double largest = 0;
        if (__builtin_popcount(mask) != SIDE)
            continue;
        for (size_t i = 0; i < FUNCTIONS; i++)
            largest = fmax(largest, z_by_the_book(mask == observed ? values : even, i, mask));
        reach += largest >= z * (1 - 1e-9);
    }
    return fmax((double)reach / 70, erfc(z / sqrt(2)));
}

static void check_exactly(const double spread[2], double (*p_of)(const double *, size_t))
{
    uint64_t seed = 7;
    for (size_t turn = 0; turn < 50; turn++) {
        double values[RUNS * FUNCTIONS], p[FUNCTIONS], q[FUNCTIONS], critical;
        for (size_t i = 0; i < RUNS * FUNCTIONS; i++)
            values[i] = noise(&seed);
        double more = noise(&seed) * fmax(spread[0], spread[1]);
        set_sides(values, (double[2]){1000, 1000 + more}, spread);
        const struct permutation_runs runs = {values, FUNCTIONS, SIDE, SIDE, false, false};
        assert_int_equal(permutation_test(p, q, &critical, &runs), 0);
        for (size_t i = 0; i < FUNCTIONS; i++)
            assert_true(fabs(p[i] - p_of(values, i)) < 1e-6);
    }
}

static void test_small_sets_exactly(void **state)
{
    (void)state;
    check_exactly((double[2]){1, 1}, p_by_the_book);
    check_exactly((double[2]){1, 30}, p_of_uneven_sides);
    check_exactly((double[2]){30, 1}, p_of_uneven_sides);
}

/* The least p that so few runs can have: 2 of 70 labellings, 2 of 64 signs. */
static void test_least_p(void **state)
{
    (void)state;
    double values[12], p, q, critical;
    for (size_t i = 0; i < 12; i++)
        values[i] = i < 6 ? 100 + (double)i : 200 + (double)(i * i);
    const struct permutation_runs pairs = {values, 1, 6, 6, true, false};
    assert_int_equal(permutation_test(&p, &q, &critical, &pairs), 0);
    assert_true(fabs(p - 2.0 / 64) < 1e-9);
    const struct permutation_runs runs = {values + 2, 1, 4, 4, false, false};
    assert_int_equal(permutation_test(&p, &q, &critical, &runs), 0);
    assert_true(fabs(p - 2.0 / 70) < 1e-9);
}

/* How many of 200 comparisons of 8 against 8 runs have a function with p, or q, <= 0.05. */
static size_t alarms(double slower_by, bool paired, bool by_q)
{
    enum { MANY = 20, SOME = 16, TURNS = 200 };
    uint64_t seed = 11;
    size_t count = 0;
    for (size_t turn = 0; turn < TURNS; turn++) {
        double values[SOME * MANY], p[MANY], q[MANY], critical, least = 1;
        for (size_t i = 0; i < SOME * MANY; i++)
            values[i] =
                100 + noise(&seed) + (i % MANY == 3 && i >= SOME * MANY / 2 ? slower_by : 0);
        const struct permutation_runs runs = {values, MANY, SOME / 2, SOME / 2, paired, false};
        assert_int_equal(permutation_test(p, q, &critical, &runs), 0);
        for (size_t i = 0; i < MANY; i++)
            least = fmin(least, by_q ? q[i] : p[i]);
        count += least <= 0.05;
    }
    return count;
}

/* By chance 10 of 200 are expected; more than 20 in one of 500 such tests, and the seed is fixed.
 */
static void test_false_alarms_and_power(void **state)
{
    (void)state;
    for (int by_q = 0; by_q < 2; by_q++) {
        assert_in_range(alarms(0, false, by_q), 1, 20);
        assert_in_range(alarms(0, true, by_q), 0, 20);
        assert_in_range(alarms(5, false, by_q), 190, 200);
    }
}

/* Nothing differs, but the runs of one side vary more.  By the labellings of the runs as they are,
 * 12 to 20 of 100 comparisons had a function with q <= 0.05, except for those with 40 runs. */
static void test_q_where_one_side_varies_more(void **state)
{
    (void)state;
    enum { SOME = 5, MOST = 44 };
    static const struct {
        size_t base, new, turns;
        double deviation[2];
    } cases[] = {{4, 4, 400, {5, 0.5}},  {7, 7, 200, {0.5, 5}}, {10, 5, 200, {0.5, 5}},
                 {5, 10, 200, {5, 0.5}}, {5, 10, 200, {8, 2}},  {4, 40, 40, {5, 0.5}},
                 {40, 4, 40, {0.5, 5}}};
    size_t all = 0, all_turns = 0;
    uint64_t seed = 17;
    for (size_t at = 0; at < sizeof cases / sizeof cases[0]; at++) {
        size_t base = cases[at].base, new = cases[at].new, alarms = 0;
        for (size_t turn = 0; turn < cases[at].turns; turn++) {
            double values[MOST * SOME], p[SOME], q[SOME], critical, least = 1;
            for (size_t i = 0; i < (base + new) * SOME; i++)
                values[i] = 100 + noise(&seed) * cases[at].deviation[i >= base * SOME];
            const struct permutation_runs runs = {values, SOME, base, new, false, false};
            assert_int_equal(permutation_test(p, q, &critical, &runs), 0);
            for (size_t i = 0; i < SOME; i++)
                least = fmin(least, q[i]);
            alarms += least <= 0.05;
        }
        print_message("%zu against %zu: %zu of %zu\n", base, new, alarms, cases[at].turns);
        assert_in_range(alarms, 0, cases[at].turns / 10);
        all += alarms;
        all_turns += cases[at].turns;
    }
    assert_in_range(all, all_turns / 100, all_turns * 6 / 100);
}

/* Of many functions with few samples one changes.  Few of the others can have as large a z: so it
 * is found. */
static void test_one_change_among_many_functions(void **state)
{
    (void)state;
    enum { MANY = 1000, EACH = 10, TURNS = 10, MORE = 23 };
    static double values[2 * EACH * MANY], p[MANY], q[MANY];
    size_t found = 0;
    uint64_t seed = 23;
    for (size_t turn = 0; turn < TURNS; turn++) {
        double critical;
        for (size_t i = 0; i < 2 * EACH * MANY; i++)
            values[i] = i % MANY ? (chance(&seed) < 0.1)
                                 : 1000 + 10 * noise(&seed) + (i >= EACH * MANY ? MORE : 0);
        const struct permutation_runs runs = {values, MANY, EACH, EACH, false, false};
        assert_int_equal(permutation_test(p, q, &critical, &runs), 0);
        found += q[0] <= 0.05;
    }
    print_message("found in %zu of %d\n", found, TURNS);
    assert_in_range(found, TURNS * 8 / 10, TURNS);
}

/* A fifth of the functions differ: q finds more of them than the largest |t|.  About one of 20 that
 * it finds does not differ. */
static void test_q_is_the_share_of_false_ones(void **state)
{
    (void)state;
    enum { MANY = 100, SOME = 16, TURNS = 20 };
    static double values[SOME * MANY], p[MANY], q[MANY];
    size_t by_p = 0, by_q = 0, false_q = 0;
    uint64_t seed = 3;
    for (size_t turn = 0; turn < TURNS; turn++) {
        double critical;
        for (size_t i = 0; i < SOME * MANY; i++)
            values[i] =
                100 + noise(&seed) + (i % MANY < MANY / 5 && i >= SOME * MANY / 2 ? 1.8 : 0);
        const struct permutation_runs runs = {values, MANY, SOME / 2, SOME / 2, false, false};
        assert_int_equal(permutation_test(p, q, &critical, &runs), 0);
        for (size_t i = 0; i < MANY; i++) {
            by_p += p[i] <= 0.05;
            by_q += q[i] <= 0.05;
            false_q += q[i] <= 0.05 && i >= MANY / 5;
        }
    }
    assert_true(by_q > by_p * 3 / 2);
    assert_true(false_q * 10 < by_q);
}

static void test_no_variance(void **state)
{
    (void)state;
    double values[16], p[2], q[2], critical;
    for (size_t i = 0; i < 8; i++) {
        values[2 * i] = 5;
        values[2 * i + 1] = i < 4 ? 0.1 : 0.3;
    }
    const struct permutation_runs runs = {values, 2, 4, 4, false, false};
    assert_int_equal(permutation_test(p, q, &critical, &runs), 0);
    assert_true(fabs(p[0] - 1) < 1e-9);
    assert_true(fabs(p[1] - 2.0 / 70) < 1e-9);
}

/* Where no run is far off, a test that could take the middles wants hardly a larger z than one of
 * the means alone, 1.96.  (The larger one of both would have to be 2.09.) */
static void test_middles_cost_little(void **state)
{
    (void)state;
    enum { EACH = 12, TURNS = 20 };
    uint64_t seed = 21;
    double wanted = 0;
    for (size_t turn = 0; turn < TURNS; turn++) {
        double values[2 * EACH], p, q, critical;
        for (size_t i = 0; i < 2 * EACH; i++)
            values[i] = 100 + noise(&seed);
        const struct permutation_runs runs = {values, 1, EACH, EACH, false, true};
        assert_int_equal(permutation_test(&p, &q, &critical, &runs), 0);
        wanted += critical / TURNS;
    }
    print_message("a z of %.3f\n", wanted);
    assert_in_range(wanted * 1000, 1960, 2040);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_sets_exactly),
        cmocka_unit_test(test_least_p),
        cmocka_unit_test(test_false_alarms_and_power),
        cmocka_unit_test(test_q_where_one_side_varies_more),
        cmocka_unit_test(test_one_change_among_many_functions),
        cmocka_unit_test(test_q_is_the_share_of_false_ones),
        cmocka_unit_test(test_middles_cost_little),
        cmocka_unit_test(test_no_variance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
