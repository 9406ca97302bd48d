/* The order of samples: by life, then by time, those of one time as they stand. */
#include "injector/check/census/sample_order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

enum { LIVES = 5 };

/* COUNT samples in runs of about RUN_LENGTH; `at` is how they stand. */
static struct census_sample *make_samples(size_t count, unsigned run_length)
{
    struct census_sample *samples = calloc(count + 1, sizeof *samples);
    uint64_t time_ns = 0;
    assert_non_null(samples);
    for (size_t i = 0; i < count; i++) {
        time_ns = (unsigned)rand() % run_length == 0 ? (unsigned)rand() % 1000
                                                     : time_ns + (unsigned)rand() % 3;
        samples[i] = (struct census_sample){
            .time_ns = time_ns, .life = (uint32_t)rand() % LIVES, .at = (uint32_t)i};
    }
    return samples;
}

static void assert_ordered(const struct census_sample *samples, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const struct census_sample *a = &samples[i - 1], *b = &samples[i];
        assert_true(a->life <= b->life);
        assert_true(a->life < b->life || a->time_ns <= b->time_ns);
        assert_true(a->life < b->life || a->time_ns < b->time_ns || a->at < b->at);
    }
}

static void test_runs_of_every_length(void **state)
{
    (void)state;
    srand(1);
    for (unsigned run_length = 1; run_length <= 1000; run_length *= 10)
        for (size_t count = 0; count < 700; count += 1 + count / 3) {
            struct census_sample *samples = make_samples(count, run_length);
            assert_int_equal(sample_order(&samples, count, LIVES), 0);
            assert_ordered(samples, count);
            free(samples);
        }
}

/* All are still there. */
static void test_no_sample_is_lost(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    bool seen[COUNT] = {false};
    struct census_sample *samples = make_samples(COUNT, 20);
    assert_int_equal(sample_order(&samples, COUNT, LIVES), 0);
    for (size_t i = 0; i < COUNT; i++) {
        assert_false(seen[samples[i].at]);
        seen[samples[i].at] = true;
    }
    free(samples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_of_every_length),
        cmocka_unit_test(test_no_sample_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
