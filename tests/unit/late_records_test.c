/* Records that wait for a lock: their order, how many there may be, and that none comes twice. */
#include "jitdump/writer/late_records.h"

#include "tests/unit/scratch.h"

#include <errno.h>

static struct late_records late;

static int begin(void **state)
{
    (void)state;
    jd_late_init(&late);
    return 0;
}

static int end(void **state)
{
    (void)state;
    jd_late_free(&late);
    return 0;
}

static void put(uint64_t number)
{
    assert_int_equal(jd_late_put(&late, number, &number, sizeof number), 0);
}

static void expect_first(uint64_t number)
{
    const struct late_record *record = jd_late_first(&late);
    assert_non_null(record);
    assert_int_equal(record->time, number);
    assert_int_equal(record->bytes, sizeof number);
    assert_memory_equal(record->data, &number, sizeof number);
}

static void take(uint64_t number)
{
    expect_first(number);
    jd_late_drop_first(&late);
}

static void expect_none(void)
{
    assert_false(jd_late_any(&late));
    assert_null(jd_late_first(&late));
}

static void test_none_is_the_first_of_none(void **state)
{
    (void)state;
    expect_none();
    put(1);
    assert_true(jd_late_any(&late) && jd_late_are_waiting(&late));
    expect_first(1);
    assert_true(jd_late_any(&late));
    assert_false(jd_late_are_waiting(&late));
    take(1);
    expect_none();
}

static void test_what_comes_while_others_are_written_is_behind_them(void **state)
{
    (void)state;
    put(1);
    put(2);
    put(3);
    take(1);
    put(4);
    expect_first(2);
    put(5);
    put(6);
    for (uint64_t number = 2; number <= 6; number++)
        take(number);
    expect_none();
    put(7);
    take(7);
    expect_none();
}

static void test_records_of_three_chunks_keep_their_order(void **state)
{
    const uint64_t count = 2 * LATE_CHUNK_RECORDS + 1;
    (void)state;
    for (int round = 0; round < 2; round++) {
        for (uint64_t number = 0; number < count; number++)
            put(number);
        assert_int_equal(late.chunk_count, 3);
        for (uint64_t number = 0; number < count; number++)
            take(number);
        expect_none();
    }
}

static void test_one_chunk_is_enough_for_2048_records(void **state)
{
    (void)state;
    for (uint64_t number = 0; number < LATE_CHUNK_RECORDS; number++)
        put(number);
    assert_int_equal(late.chunk_count, 1);
    for (uint64_t number = 0; number < 3 * LATE_CHUNK_RECORDS; number++) {
        take(number);
        put(number + LATE_CHUNK_RECORDS);
    }
    assert_int_equal(late.chunk_count, 1);
}

/* A thread has read the head of the unused records, and sleeps. Meanwhile others take two records
 * and give back the first: the head that it has read is no longer the one of the list, though the
 * same record is the first. */
static void test_a_head_that_was_read_before_is_not_the_head_again(void **state)
{
    (void)state;
    put(0);
    put(1);
    take(0);
    take(1);
    uint64_t read_before = late.unused;
    put(2);
    put(3);
    expect_first(2);
    jd_late_drop_first(&late);
    assert_int_equal((uint32_t)late.unused, (uint32_t)read_before);
    assert_false(atomic_compare_exchange_strong(&late.unused, &read_before, 0));
    take(3);
}

static void test_after_half_a_million_records_there_is_no_room(void **state)
{
    const uint64_t most = (uint64_t)LATE_CHUNKS * LATE_CHUNK_RECORDS;
    (void)state;
    for (uint64_t number = 0; number < most; number++)
        put(number);
    assert_int_equal(jd_late_put(&late, most, &most, sizeof most), -ENOMEM);
    take(0);
    put(most);
    assert_int_equal(jd_late_put(&late, most, &most, sizeof most), -ENOMEM);
    for (uint64_t number = 1; number <= most; number++)
        take(number);
    expect_none();
}

static void test_freed_they_can_be_used_again(void **state)
{
    (void)state;
    put(1);
    put(2);
    expect_first(1);
    jd_late_free(&late);
    expect_none();
    put(3);
    take(3);
    assert_int_equal(late.chunk_count, 1);
}

#define LATE_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LATE_TEST(test_none_is_the_first_of_none),
        LATE_TEST(test_what_comes_while_others_are_written_is_behind_them),
        LATE_TEST(test_records_of_three_chunks_keep_their_order),
        LATE_TEST(test_one_chunk_is_enough_for_2048_records),
        LATE_TEST(test_a_head_that_was_read_before_is_not_the_head_again),
        LATE_TEST(test_after_half_a_million_records_there_is_no_room),
        LATE_TEST(test_freed_they_can_be_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
