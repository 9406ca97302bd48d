/* BPF programs and trampolines: what was where, and when. */
#include "injector/recording/records.h"

#include "injector/recording/perf_data/perf_format.h"
#include "tests/unit/profile_builder.h"

#include <cmocka.h>

#define AT UINT64_C(0xffffffffc0200000)

static struct profile_builder built;
static struct perf_file file;
static struct records records;
static struct findings findings;

static int begin(void **state)
{
    (void)state;
    profile_begin_one(&built);
    return 0;
}

static int end(void **state)
{
    (void)state;
    records_free(&records);
    perf_file_close(&file);
    return 0;
}

/* NAME has 7 letters. */
static void add(uint64_t start, uint32_t len, uint16_t flags, const char *name, uint64_t time_ns)
{
    size_t record = profile_begin_record(&built, PERF_RECORD_KSYMBOL, 0);
    sink_u64(&built.sink, start);
    sink_u32(&built.sink, len);
    sink_u16(&built.sink, 1); /* of BPF */
    sink_u16(&built.sink, flags);
    sink_bytes(&built.sink, name, 8);
    profile_put_trailer(&built, 0, 0, time_ns);
    profile_end_record(&built, record);
}

static void read_all(void)
{
    profile_end_records(&built);
    open_built_profile(&built, &file);
    assert_int_equal(records_read(&records, &file, &findings), 0);
}

static void assert_code(uint64_t pc, uint64_t time_ns, const char *name)
{
    size_t found =
        kernel_code_at(&records.kernel_code, pc, (struct life_moment){time_ns, UINT64_MAX});
    assert_string_equal(found == NO_KERNEL_CODE ? "none" : records.kernel_code.items[found].name,
                        name);
}

static void test_a_program_is_there_while_it_lives(void **state)
{
    (void)state;
    add(AT, 0x100, 0, "program", 10);
    add(AT, 0x100, PERF_KSYMBOL_UNREGISTER, "program", 30);
    read_all();
    assert_code(AT, 9, "none");
    assert_code(AT, 10, "program");
    assert_code(AT + 0xff, 29, "program");
    assert_code(AT + 0x100, 29, "none");
    assert_code(AT - 1, 29, "none");
    assert_code(AT, 30, "none");
}

static void test_an_address_is_used_again(void **state)
{
    (void)state;
    add(AT, 0x40, 0, "another", 50); /* the file's order is not that of time */
    add(AT, 0x100, 0, "program", 10);
    add(AT, 0x100, PERF_KSYMBOL_UNREGISTER, "program", 30);
    add(AT + 0x40, 0x100, 0, "overlap", 60);
    read_all();
    assert_code(AT, 20, "program");
    assert_code(AT, 40, "none");
    assert_code(AT, 50, "another");
    assert_code(AT + 0x80, 50, "none");
    assert_code(AT + 0x80, 60, "overlap");
    assert_code(AT + 0x20, 70, "another");
}

static void test_what_was_there_before_the_recording_has_no_time(void **state)
{
    (void)state;
    add(AT, 0x100, 0, "program", 0);
    add(AT + 0x1000, 0x1000, 0, "insn_pg", 0);
    read_all();
    assert_code(AT, 1, "program");
    assert_code(AT + 0x1fff, 1, "insn_pg");
}

static void test_code_whose_end_was_lost_ends_below_other_code(void **state)
{
    (void)state;
    add(AT, 0x100, 0, "program", 10);
    add(AT + 0x80, 0x100, 0, "another", 20);
    add(AT + 0x80, 0x100, PERF_KSYMBOL_UNREGISTER, "another", 30);
    read_all();
    assert_code(AT + 0x90, 15, "program");
    assert_code(AT + 0x90, 25, "another");
    assert_code(AT + 0x90, 35, "none");
    assert_code(AT, 35, "program");
}

static void test_damaged_records_say_nothing(void **state)
{
    (void)state;
    add(AT, 0, 0, "program", 10);
    add(UINT64_MAX - 0xff, 0x200, 0, "program", 10);
    size_t record = profile_begin_record(&built, PERF_RECORD_KSYMBOL, 0);
    sink_u64(&built.sink, AT);
    profile_end_record(&built, record);
    record = profile_begin_record(&built, PERF_RECORD_KSYMBOL, 0);
    sink_u64(&built.sink, AT);
    sink_u64(&built.sink, 0x100);
    sink_bytes(&built.sink, "no end..", 8);
    profile_end_record(&built, record);
    read_all();
    assert_int_equal(records.kernel_code.count, 0);
    assert_code(AT, 20, "none");
}

#define CODE_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CODE_TEST(test_a_program_is_there_while_it_lives),
        CODE_TEST(test_an_address_is_used_again),
        CODE_TEST(test_what_was_there_before_the_recording_has_no_time),
        CODE_TEST(test_code_whose_end_was_lost_ends_below_other_code),
        CODE_TEST(test_damaged_records_say_nothing),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
