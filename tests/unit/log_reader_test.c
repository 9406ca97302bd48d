/* What stands behind a second header, and code that stands behind its record. */
#include "tests/unit/log_world.h"

/* ---- A second header ---- */

/* Another clock may count from the header on: times may be lower than before. */
static void test_a_second_header_with_older_times_behind_it(void **state)
{
    struct fixture fixture;
    (void)state;
    begin();
    dump_load(&built, 5000, ADDR, "old", "code", 0);
    put_header(4711, false, 0);
    dump_load(&built, 7, ADDR + 64, "new", "code", 1);
    read_built(&fixture);
    assert_repaired(&fixture.findings, QUIRK_HEADER_AGAIN, 1);
    release(&fixture);
}

static void test_times_that_fall_behind_a_second_header(void **state)
{
    struct fixture fixture;
    (void)state;
    begin();
    put_header(4711, false, 0);
    dump_load(&built, 7, ADDR, "f", "code", 0);
    dump_load(&built, 6, ADDR + 64, "g", "code", 1);
    dump_load(&built, 6, ADDR + 128, "h", "code", 2);
    read_built(&fixture);
    assert_int_equal(fixture.findings.repaired[QUIRK_TIME_BACKWARDS], 1);
    release(&fixture);
}

static void test_a_second_header_behind_a_close(void **state)
{
    struct fixture fixture;
    (void)state;
    begin();
    dump_load(&built, 5, ADDR, "old", "code", 0);
    dump_plain(&built, JIT_CODE_CLOSE, 6, 0);
    put_header(4711, false, 0);
    dump_load(&built, 7, ADDR + 64, "new", "code", 1);
    read_built(&fixture);
    assert_repaired(&fixture.findings, QUIRK_HEADER_AGAIN, 1);
    release(&fixture);
}

/* What the own process writes behind another's header and its own again is its own. */
static void test_the_own_header_behind_anothers(void **state)
{
    struct fixture fixture;
    (void)state;
    begin();
    put_header(4712, false, 0);
    dump_load(&built, 6, ADDR, "another's", "code", 0);
    put_header(4711, false, 0);
    dump_load(&built, 7, ADDR + 64, "own", "code", 1);
    read_built(&fixture);
    assert_int_equal(fixture.log.function_count, 1);
    assert_string_equal(fixture.log.functions[0].name, "own");
    release(&fixture);
}

/* ---- Code behind its record ---- */

/* A LOAD without code, of CODE_SIZE bytes. */
static void put_load_without_code(uint64_t code_size)
{
    size_t start = dump_begin_load(&built, 5, ADDR, code_size, 7);
    sink_cstr(&built.sink, "behind");
    dump_end_record(&built, start);
}

static void test_code_behind_the_last_load_up_to_the_end_of_the_file(void **state)
{
    struct fixture fixture;
    (void)state;
    begin();
    put_load_without_code(4);
    sink_bytes(&built.sink, "code", 4);
    read_built(&fixture);
    assert_repaired(&fixture.findings, QUIRK_CODE_BEHIND, 1);
    assert_memory_equal(fixture.log.functions[0].code, "code", 4);
    release(&fixture);
}

static void test_code_behind_a_load_up_to_another_record(void **state)
{
    struct fixture fixture;
    (void)state;
    begin();
    put_load_without_code(4);
    sink_bytes(&built.sink, "code", 4);
    dump_load(&built, 6, ADDR + 64, "next", "next", 8);
    read_built(&fixture);
    assert_repaired(&fixture.findings, QUIRK_CODE_BEHIND, 1);
    assert_int_equal(fixture.log.function_count, 2);
    assert_memory_equal(fixture.log.functions[0].code, "code", 4);
    release(&fixture);
}

/* A record that happens to be as long as the code is no code. */
static void test_a_record_as_long_as_the_code_that_is_missing_in_front_of_it(void **state)
{
    struct fixture fixture;
    (void)state;
    begin();
    put_load_without_code(JR_PREFIX_BYTES);
    dump_plain(&built, JIT_CODE_CLOSE, 6, 0);
    dump_plain(&built, JIT_CODE_CLOSE, 6, 0);
    read_built(&fixture);
    assert_null(fixture.log.functions[0].code);
    assert_int_equal(fixture.findings.repaired[QUIRK_CODE_BEHIND], 0);
    assert_int_equal(fixture.findings.count[FINDING_BYTES_ABSENT], 1);
    release(&fixture);
}

static void test_a_second_header_of_version_2_is_one_and_of_version_3_is_none(void **state)
{
    (void)state;
    for (uint8_t version = 2; version <= 3; version++) {
        struct fixture fixture;
        begin();
        dump_load(&built, 5, ADDR, "old", "code", 0);
        size_t header = built.sink.size;
        put_header(4711, false, 0);
        built.bytes[header + 4] = version;
        dump_load(&built, 7, ADDR + 64, "new", "code", 1);
        read_built(&fixture);
        assert_int_equal(fixture.findings.repaired[QUIRK_HEADER_AGAIN], version == 2);
        release(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_second_header_with_older_times_behind_it),
        cmocka_unit_test(test_times_that_fall_behind_a_second_header),
        cmocka_unit_test(test_a_second_header_behind_a_close),
        cmocka_unit_test(test_the_own_header_behind_anothers),
        cmocka_unit_test(test_code_behind_the_last_load_up_to_the_end_of_the_file),
        cmocka_unit_test(test_code_behind_a_load_up_to_another_record),
        cmocka_unit_test(test_a_record_as_long_as_the_code_that_is_missing_in_front_of_it),
        cmocka_unit_test(test_a_second_header_of_version_2_is_one_and_of_version_3_is_none),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
