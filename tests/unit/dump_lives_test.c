/* Who only reads a dump, and in which of two lives of one pid it was written. */
#include "tests/unit/process_world.h"

/* ---- Who reads a dump ---- */

static void test_a_data_mapping_of_anothers_dump_is_no_marker(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_marker(PID, dump_path, ms(1000));
    put_reader(OTHER, dump_path, ms(1300));
    assert_reads(NULL, 1);
    assert_int_equal(processes.items[0].pid, PID);
    assert_int_equal(processes.marker_count, 1);
    assert_int_equal(findings_lost(&findings), 0);
}

/* On a file system that is mounted noexec. */
static void test_a_data_mapping_of_a_dump_of_the_own_pid_is_a_marker(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    put_reader(PID, dump_path, ms(1000));
    assert_reads(NULL, 1);
    assert_int_equal(processes.items[0].pid, PID);
    assert_int_equal(processes.marker_count, 1);
    assert_int_equal(findings_lost(&findings), 0);
}

static void test_a_data_mapping_of_a_dump_of_another_name_is_no_marker(void **state)
{
    (void)state;
    write_two(dump_path, PID, ms(1100), ms(1200));
    write_two(other_path, PID, ms(1100), ms(1200));
    put_marker(PID, dump_path, ms(1000));
    put_reader(PID, other_path, ms(1010));
    assert_reads(NULL, 1);
    assert_int_equal(processes.items[0].dump_count, 1);
    assert_int_equal(processes.marker_count, 1);
}

/* ---- A pid that is used again ---- */

/* When the two lives of PID begin and end. */
static const uint64_t first_life_ms[] = {1000, 1500}, second_life_ms[] = {1800, 1900};

static void put_life(const uint64_t life_ms[2], const char *path)
{
    put_fork(PID, 1, ms(life_ms[0]));
    put_marker(PID, path, ms(life_ms[0] + 10));
    put_exit(PID, PID, ms(life_ms[1]));
}

/* The dump was opened at HEADER_NS, and its records are of a time after both lives, further from
 * each other than a life is long: no clock makes them fit. */
static void put_two_lives(const char *first_path, uint64_t header_ns)
{
    write_two(dump_path, PID, ms(7000), ms(17000));
    set_header_time(dump_path, header_ns);
    put_life(first_life_ms, first_path);
    put_life(second_life_ms, dump_path);
}

/* Of how many of the two lives it is said that another process wrote the dump; of the others, that
 * its times fit no clock. */
static void expect_anothers(uint64_t header_ns, uint64_t count)
{
    void *nothing = NULL;
    put_two_lives(dump_path, header_ns);
    assert_int_equal(read_all(NULL), -1);
    assert_int_equal(findings.count[FINDING_DUMP_REPLACED], count);
    assert_int_equal(findings.count[FINDING_DUMP_UNUSABLE], 2 - count);
    assert_int_equal(end(&nothing), 0);
    assert_int_equal(begin(&nothing), 0);
}

static void test_of_two_lives_of_a_pid_the_header_of_one_is_anothers_for_the_other(void **state)
{
    (void)state;
    expect_anothers(ms(first_life_ms[0]), 1);
    expect_anothers(ms(1200), 1);
    expect_anothers(ms(first_life_ms[1]), 1);
    expect_anothers(ms(second_life_ms[0]), 1);
    expect_anothers(ms(second_life_ms[1]), 1);
}

static void test_of_two_lives_of_a_pid_a_header_before_between_or_after_is_nobodys(void **state)
{
    (void)state;
    expect_anothers(ms(first_life_ms[0]) - 1, 0);
    expect_anothers(ms(first_life_ms[1]) + 1, 0);
    expect_anothers(ms(second_life_ms[0]) - 1, 0);
    expect_anothers(ms(second_life_ms[1]) + 1, 0);
}

static void test_a_header_of_a_life_that_mapped_a_dump_of_another_name_is_nobodys(void **state)
{
    (void)state;
    write_two(other_path, PID, ms(1200), ms(1300));
    set_header_time(other_path, ms(1010));
    put_two_lives(other_path, ms(1200));
    assert_reads(NULL, 1);
    assert_int_equal(findings.count[FINDING_DUMP_REPLACED], 0);
    assert_int_equal(findings.count[FINDING_DUMP_UNUSABLE], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROCESS_TEST(test_a_data_mapping_of_anothers_dump_is_no_marker),
        PROCESS_TEST(test_a_data_mapping_of_a_dump_of_the_own_pid_is_a_marker),
        PROCESS_TEST(test_a_data_mapping_of_a_dump_of_another_name_is_no_marker),
        PROCESS_TEST(test_of_two_lives_of_a_pid_the_header_of_one_is_anothers_for_the_other),
        PROCESS_TEST(test_of_two_lives_of_a_pid_a_header_before_between_or_after_is_nobodys),
        PROCESS_TEST(test_a_header_of_a_life_that_mapped_a_dump_of_another_name_is_nobodys),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
