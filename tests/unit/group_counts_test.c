/* What a group's events have of each sample. */
#include "injector/profile/group_counts.h"

#include "tests/unit/scratch.h"

static uint64_t grown(struct group_counts *counts, uint64_t id, uint32_t tid, uint64_t value)
{
    uint64_t by = UINT64_MAX;
    assert_int_equal(group_counts_set(counts, id, tid, value, &by), 0);
    return by;
}

static void test_growth(void **state)
{
    (void)state;
    struct group_counts counts = {0};
    assert_int_equal(grown(&counts, 7, 0, 100), 100);
    assert_int_equal(grown(&counts, 8, 0, 3), 3);
    assert_int_equal(grown(&counts, 7, 0, 250), 150);
    assert_int_equal(grown(&counts, 8, 0, 3), 0);
    assert_int_equal(grown(&counts, 0, 0, 5), 5); /* an id like any other */
    group_counts_free(&counts);
}

/* Linux 6.13: a thread's samples have its own counts. */
static void test_threads(void **state)
{
    (void)state;
    struct group_counts counts = {0};
    for (uint64_t turn = 1; turn <= 3; turn++)
        for (uint32_t tid = 1; tid <= 1000; tid++)
            assert_int_equal(grown(&counts, 7, tid, turn * tid), tid);
    group_counts_free(&counts);
}

/* A count that falls is damage: nothing is made of it that would be more than was counted. */
static void test_fall(void **state)
{
    (void)state;
    struct group_counts counts = {0};
    grown(&counts, 7, 0, 100);
    assert_int_equal(grown(&counts, 7, 0, 40), 0);
    assert_int_equal(grown(&counts, 7, 0, 50), 10);
    group_counts_free(&counts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_fall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
