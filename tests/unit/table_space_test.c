/* Where unwind tables go: where a process never had executable memory. */
#include "injector/inject/layout/table_space.h"

#include "injector/inject/layout/image_plan.h"

#include "tests/unit/process_builder.h"

#define MIB (UINT64_C(1) << 20)
#define KIB (UINT64_C(1) << 10)

static struct process_builder built;
static struct table_space space;
static const struct image_plan no_images;

static int begin(void **state)
{
    (void)state;
    process_begin(&built);
    return 0;
}

static int end(void **state)
{
    (void)state;
    table_space_free(&space);
    process_free(&built);
    return 0;
}

static void open_space(void)
{
    assert_int_equal(table_space_open(&space, &built.process, &built.process, &no_images), 0);
}

static void add_data_map(uint64_t start, uint64_t len, const char *filename)
{
    build_map(&built, 1, start, len, filename);
    built.maps[built.process.map_count - 1].map.data = true;
}

static uint64_t take(uint64_t from, uint64_t limit, uint64_t bytes)
{
    return table_space_take(&space, from, limit, bytes);
}

static void test_tables_go_to_the_first_gap_above(void **state)
{
    (void)state;
    build_map(&built, 1, 1 * MIB, MIB, "//anon");
    build_map(&built, 1, 3 * MIB, MIB, "/lib/a.so");
    open_space();
    assert_int_equal(take(MIB, 9 * MIB, 0x108), 2 * MIB);
    assert_int_equal(take(MIB, 9 * MIB, 0x100), 2 * MIB + 0x110); /* aligned to 16 */
    assert_int_equal(take(MIB, 9 * MIB, MIB), 4 * MIB);           /* no room below */
    assert_int_equal(take(MIB, 4 * MIB, MIB), 0);
}

static void test_gaps_below_64_kib_are_left_alone(void **state)
{
    (void)state;
    build_map(&built, 1, 1 * MIB, MIB, "//anon");
    build_map(&built, 1, 2 * MIB + 64 * KIB - 1, MIB, "//anon");
    build_map(&built, 1, 3 * MIB + 128 * KIB - 1, MIB, "//anon");
    open_space();
    assert_int_equal(take(MIB, 9 * MIB, 16), 3 * MIB + 64 * KIB + 15 - 15);
}

static void test_code_that_no_mapping_shows_is_not_hidden(void **state)
{
    (void)state;
    build_map(&built, 1, 1 * MIB, MIB, "//anon");
    build_load(&built, 1, 2 * MIB, MIB);
    open_space();
    assert_int_equal(take(MIB, 9 * MIB, 16), 3 * MIB);
}

/* As node's threads do: all that is near is reserved for code, and little of it ever becomes
 * executable. */
static void test_reserved_memory_is_taken_where_all_else_is_too_far(void **state)
{
    (void)state;
    add_data_map(1 * MIB, 512 * MIB, "//anon");
    build_map(&built, 2, 1 * MIB, 256 * KIB, "//anon");
    add_data_map(513 * MIB, 512 * MIB, "//anon");
    build_map(&built, 3, 513 * MIB, 256 * KIB, "//anon");
    open_space();
    assert_int_equal(take(MIB, 600 * MIB, 16), MIB + 256 * KIB);
    assert_int_equal(take(MIB, 2000 * MIB, 16), 1025 * MIB);
}

static void test_files_and_what_was_executable_once_are_not_taken(void **state)
{
    (void)state;
    add_data_map(1 * MIB, 4 * MIB, "//anon");
    add_data_map(5 * MIB, 4 * MIB, "/data");
    build_map(&built, 2, 1 * MIB, 4 * MIB, "//anon");
    open_space();
    assert_int_equal(take(MIB, 9 * MIB, 16), 0);
}

/* What lies in a hole between two mappings is in one list only. */
static void test_no_address_is_given_twice(void **state)
{
    uint64_t seed = 3, taken[200];
    (void)state;
    add_data_map(1 * MIB, MIB, "//anon");
    build_map(&built, 1, 3 * MIB, MIB, "//anon");
    add_data_map(4 * MIB, MIB, "//anon");
    build_map(&built, 1, 6 * MIB, MIB, "//anon");
    open_space();
    for (size_t i = 0; i < 200; i++) {
        taken[i] = take(random_below(&seed, 4) * MIB, 6 * MIB, 0x1000);
        for (size_t other = 0; taken[i] && other < i; other++)
            assert_true(!taken[other] || taken[i] >= taken[other] + 0x1000 ||
                        taken[other] >= taken[i] + 0x1000);
    }
    assert_int_not_equal(taken[0], 0);
}

#define SPACE_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

/* What is left of a gap is less than the alignment takes, and the gap's end is not aligned. */
static void test_the_next_multiple_of_16_behind_the_end_of_a_gap(void **state)
{
    (void)state;
    build_map(&built, 1, 1 * MIB, MIB, "//anon");
    build_map(&built, 1, 3 * MIB + 8, MIB, "//anon");
    open_space();
    assert_int_equal(take(MIB, 9 * MIB, MIB + 1), 2 * MIB);
    assert_int_equal(take(MIB, 9 * MIB, 4), 4 * MIB + 16);
}

static void test_a_gap_and_a_limit_are_used_up_to_their_last_byte(void **state)
{
    (void)state;
    build_map(&built, 1, 1 * MIB, MIB, "//anon");
    build_map(&built, 1, 3 * MIB, MIB, "//anon");
    open_space();
    assert_int_equal(take(MIB, 9 * MIB, MIB + 1), 4 * MIB);
    assert_int_equal(take(MIB, 9 * MIB, MIB), 2 * MIB);
    assert_int_equal(take(MIB, 6 * MIB, MIB - 15), 0);
    assert_int_equal(take(MIB, 6 * MIB, MIB - 16), 5 * MIB + 16);
    assert_int_equal(take(MIB, 6 * MIB, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPACE_TEST(test_tables_go_to_the_first_gap_above),
        SPACE_TEST(test_gaps_below_64_kib_are_left_alone),
        SPACE_TEST(test_code_that_no_mapping_shows_is_not_hidden),
        SPACE_TEST(test_reserved_memory_is_taken_where_all_else_is_too_far),
        SPACE_TEST(test_files_and_what_was_executable_once_are_not_taken),
        SPACE_TEST(test_no_address_is_given_twice),
        SPACE_TEST(test_the_next_multiple_of_16_behind_the_end_of_a_gap),
        SPACE_TEST(test_a_gap_and_a_limit_are_used_up_to_their_last_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
