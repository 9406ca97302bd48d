/* Whether what a verdict says of itself is so: how large a change would have been seen. */
#include "injector/compare/verdict.h"

#include "tests/unit/random_numbers.h"
#include "tests/unit/scratch.h"

#include <string.h>

enum { TURNS = 200, BUSY_TURNS = 100 };

/* A run of one function, which takes US. */
static void add_run(struct run_set *set, bool is_new, double us)
{
    struct call_profile profile;
    const struct profile_choice choice = {0, PROFILE_ALL, WEIGHT_PERIOD};
    const struct profile_event event = {0, true};
    const struct profile_thread thread = {0};
    assert_int_equal(call_profile_begin(&profile), 0);
    assert_int_equal(call_profile_add_event(&profile, &event), 0);
    const struct call_frame frame = {.name = call_profile_add_string(&profile, "hot", 3)};
    const struct call_sample sample = {
        .period = (uint64_t)(us * 1000),
        .node = call_profile_add_node(&profile, 0, call_profile_add_frame(&profile, &frame)),
        .thread = call_profile_add_thread(&profile, &thread)};
    assert_int_equal(call_profile_add_sample(&profile, &sample), 0);
    assert_int_equal(run_set_add(set, is_new, &profile, &choice), 0);
    call_profile_free(&profile);
}

/* The total of RUNS against RUNS of 1 000 us, the new ones MORE, with a deviation of 10; one of
 * BUSY_ONE_OF, if it is not 0, meets a neighbour and takes up to 300 longer. */
static struct compared_row compare(uint64_t *seed, size_t runs, bool paired, double more,
                                   uint64_t busy_one_of)
{
    struct run_set set;
    struct verdicts verdicts;
    assert_int_equal(run_set_begin(&set), 0);
    for (size_t i = 0; i < 2 * runs; i++) {
        bool busy = busy_one_of && chance(seed) * (double)busy_one_of < 1;
        double late = busy ? 300 * chance(seed) : 0;
        add_run(&set, i % 2, 1000 + 10 * noise(seed) + (i % 2 ? more : 0) + late);
    }
    assert_int_equal(verdicts_find(&verdicts, &set, paired, 0), 0);
    struct compared_row total = verdicts.total;
    verdicts_free(&verdicts);
    run_set_free(&set);
    return total;
}

/* A change as large as it says that 4 of 5 comparisons would show is shown by 4 of 5; a deviation
 * that is estimated from so few runs leaves 1 of 10 more or less. */
static void test_what_would_have_been_seen_is_seen(void **state)
{
    (void)state;
    static const struct {
        size_t runs;
        bool paired;
    } cases[] = {{4, false}, {6, true}, {10, true}};
    uint64_t seed = 11;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double least = 0;
        size_t seen = 0;
        for (size_t turn = 0; turn < TURNS; turn++)
            least += compare(&seed, cases[i].runs, cases[i].paired, 0, 0).least / TURNS / 1000;
        for (size_t turn = 0; turn < TURNS; turn++)
            seen +=
                compare(&seed, cases[i].runs, cases[i].paired, least, 0).verdict == VERDICT_SLOWER;
        print_message("%zu, %s: %.1f us are seen in %zu of %d\n", cases[i].runs,
                      cases[i].paired ? "paired" : "not paired", least, seen, TURNS);
        assert_in_range(seen, TURNS * 70 / 100, TURNS * 90 / 100);
    }
}

/* Neighbours that come and go seldom hide a change of twice the deviation (the means alone show
 * 36 of 100), and make none. */
static void test_runs_that_a_neighbour_met(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (int paired = 0; paired < 2; paired++) {
        size_t seen = 0, wrong = 0, false_ones = 0;
        for (size_t turn = 0; turn < BUSY_TURNS; turn++) {
            enum verdict verdict = compare(&seed, 10, paired, 20, 8).verdict;
            seen += verdict == VERDICT_SLOWER;
            wrong += verdict == VERDICT_FASTER;
            verdict = compare(&seed, 10, paired, 0, 8).verdict;
            false_ones += verdict == VERDICT_SLOWER || verdict == VERDICT_FASTER;
        }
        print_message("%s: %zu of %d seen, %zu false\n", paired ? "paired" : "not paired", seen,
                      BUSY_TURNS, false_ones);
        assert_in_range(seen, BUSY_TURNS / 2, BUSY_TURNS);
        assert_int_equal(wrong, 0);
        assert_in_range(false_ones, 0, BUSY_TURNS * 10 / 100);
    }
}

/* Two sides of one program: so many runs, which vary by so much around 1 000 us; the first of
 * either may be far off. */
struct two_sides {
    size_t runs[2];
    double deviation[2], far[2];
    double more; /* in the new ones */
};

struct counts {
    size_t slower, faster, closed; /* the gate, at 2 % */
};

static struct counts simulate(const struct two_sides *sides, bool paired, size_t turns)
{
    struct counts counts = {0};
    uint64_t seed = 3;
    for (size_t turn = 0; turn < turns; turn++) {
        struct run_set set;
        struct verdicts verdicts;
        assert_int_equal(run_set_begin(&set), 0);
        for (int side = 0; side < 2; side++)
            for (size_t i = 0; i < sides->runs[side]; i++)
                add_run(&set, side,
                        1000 + sides->deviation[side] * noise(&seed) + (side ? sides->more : 0) +
                            (i == 0 ? sides->far[side] : 0));
        assert_int_equal(verdicts_find(&verdicts, &set, paired, 0.01), 0);
        counts.slower += verdicts.total.verdict == VERDICT_SLOWER;
        counts.faster += verdicts.total.verdict == VERDICT_FASTER;
        counts.closed += verdicts_regress(&verdicts, 0.02);
        verdicts_free(&verdicts);
        run_set_free(&set);
    }
    return counts;
}

/* Of 100 comparisons of one program about five are wrong, and one closes the gate.  A t of one
 * common deviation was wrong in 47, 15 and 17 of the first three. */
static void test_sides_that_vary_differently(void **state)
{
    (void)state;
    enum { SOME = 60 };
    static const struct two_sides cases[] = {
        {{4, 40}, {50, 5}, {0, 0}, 0},      {{5, 10}, {80, 20}, {0, 0}, 0},
        {{5, 10}, {50, 5}, {0, 0}, 0},      {{10, 10}, {30, 30}, {0, 0}, 0},
        {{12, 12}, {20, 20}, {3000, 0}, 0}, {{12, 12}, {20, 20}, {0, 3000}, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct counts counts = simulate(&cases[i], false, SOME);
        print_message("%zu against %zu: %zu of %d wrong, %zu close\n", cases[i].runs[0],
                      cases[i].runs[1], counts.slower + counts.faster, SOME, counts.closed);
        assert_in_range(counts.slower + counts.faster, 0, SOME / 10);
        assert_in_range(counts.closed, 0, SOME / 20);
    }
}

/* A run that is far off neither hides a change of 10 %, nor makes one of 1.5 % close a gate of 2.
 */
static void test_one_run_that_is_far_off(void **state)
{
    (void)state;
    enum { SOME = 20 };
    static const struct two_sides hidden = {{12, 12}, {5, 5}, {30000, 0}, 100};
    static const struct two_sides inflated = {{12, 12}, {3, 3}, {0, 30000}, 15};
    for (int paired = 0; paired < 2; paired++) {
        struct counts counts = simulate(&hidden, paired, SOME);
        assert_int_equal(counts.slower, SOME);
        assert_int_equal(counts.closed, SOME);
        counts = simulate(&inflated, paired, SOME);
        assert_in_range(counts.slower, SOME * 9 / 10, SOME);
        assert_int_equal(counts.closed, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_would_have_been_seen_is_seen),
        cmocka_unit_test(test_runs_that_a_neighbour_met),
        cmocka_unit_test(test_sides_that_vary_differently),
        cmocka_unit_test(test_one_run_that_is_far_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
