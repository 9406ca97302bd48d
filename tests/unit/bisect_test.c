/* Binary search, against a walk from the first item on. */
#include "injector/arrays/bisect.h"

#include "tests/unit/scratch.h"

enum { MOST = 40, REPEATED = 3 };

static size_t walk(const uint32_t *items, size_t count, uint32_t value)
{
    size_t at = 0;
    while (at < count && items[at] < value)
        at++;
    return at;
}

/* Values 1, 1, 1, 2, 2, 2, ...: below the first one, between two, and above the last one. */
static void test_finds_the_first_of_equal_items(void **state)
{
    uint32_t items[MOST];
    (void)state;
    for (uint32_t i = 0; i < MOST; i++)
        items[i] = 1 + i / REPEATED * 2;
    for (size_t count = 0; count <= MOST; count++)
        for (uint32_t value = 0; value <= MOST; value++) {
            size_t at;
            array_bisect(at, count, items[at] < value);
            assert_int_equal(at, walk(items, count, value));
        }
}

static void test_looks_at_few_items(void **state)
{
    size_t at, looked = 0;
    (void)state;
    array_bisect(at, 1000000, (looked++, at < 765432));
    assert_int_equal(at, 765432);
    assert_true(looked <= 20);
}

static void test_none_of_no_items_is_looked_at(void **state)
{
    size_t at, looked = 0;
    (void)state;
    array_bisect(at, 0, (looked++, true));
    assert_int_equal(at, 0);
    assert_int_equal(looked, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_the_first_of_equal_items),
        cmocka_unit_test(test_looks_at_few_items),
        cmocka_unit_test(test_none_of_no_items_is_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
