/* A map of numbers, against an array of what was last put for each key. */
#include "injector/arrays/number_map.h"

#include "tests/unit/scratch.h"

#include <stdbool.h>
#include <stdlib.h>

enum { KEYS = 1 << 13, PUTS = 3 * KEYS };

/* Addresses of code, and keys of which only the highest bits differ. */
static uint64_t key_of(uint32_t number)
{
    return number % 2 ? UINT64_C(0x7f0000000000) + number * UINT64_C(64) : (uint64_t)number << 50;
}

static void test_the_last_value_of_each_key(void **state)
{
    static uint32_t values[KEYS];
    static bool is_put[KEYS];
    struct number_map map = {0};
    size_t count = 0;
    (void)state;
    srandom(1);
    assert_int_equal(number_map_get(&map, 0), NUMBER_MAP_NOTHING);
    for (uint32_t i = 0; i < PUTS; i++) {
        const uint32_t number = (uint32_t)random() % KEYS;
        values[number] = i % 5 ? i : UINT32_MAX - 1 - i;
        count += !is_put[number];
        is_put[number] = true;
        assert_int_equal(number_map_put(&map, key_of(number), values[number]), 0);
        assert_int_equal(number_map_get(&map, key_of(number)), values[number]);
    }
    for (uint32_t i = 0; i < KEYS; i++)
        assert_int_equal(number_map_get(&map, key_of(i)),
                         is_put[i] ? values[i] : NUMBER_MAP_NOTHING);
    assert_int_equal(map.count, count);
    assert_true(2 * count <= map.size);
    number_map_free(&map);
    assert_int_equal(number_map_get(&map, key_of(1)), NUMBER_MAP_NOTHING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_last_value_of_each_key)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
