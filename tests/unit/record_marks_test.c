/* From mark to mark through a recording: nothing is passed that may matter, and little is read. */
#include "injector/recording/record_marks.h"

#include "injector/recording/records.h"
#include "tests/unit/profile_builder.h"

enum { COUNT = 8 * RECORDS_A_MARK + 1, FIRST_NS = 1000 };

static struct profile_builder built;
static struct perf_file file;
static struct records records;
static struct findings findings;

/* COUNT samples, one each nanosecond but for number 5, which is the youngest of all. */
static int begin(void **state)
{
    (void)state;
    profile_begin_one(&built);
    for (uint64_t i = 0; i < COUNT; i++)
        profile_sample(&built, 0, FIRST_NS + (i == 5 ? COUNT : i));
    profile_end_records(&built);
    open_built_profile(&built, &file);
    return records_read(&records, &file, &findings);
}

static int end(void **state)
{
    (void)state;
    records_free(&records);
    perf_file_close(&file);
    findings_free(&findings);
    return 0;
}

static void test_reading_marks_every_so_many(void **state)
{
    (void)state;
    assert_int_equal(records.marks.count, 9);
    for (size_t i = 0; i < 9; i++)
        assert_int_equal(records.marks.items[i].number, i * RECORDS_A_MARK);
    assert_int_equal(records.marks.items[0].latest_ns, FIRST_NS + COUNT);
    assert_int_equal(records.marks.items[1].latest_ns, FIRST_NS + 2 * RECORDS_A_MARK - 1);
    assert_int_equal(records.marks.items[8].latest_ns, FIRST_NS + 8 * RECORDS_A_MARK);
}

/* Read on from WALK, skipping, up to the first record of SINCE_NS, or one at OFFSET; returns how
 * many were read.  None that matters is passed. */
static size_t read_on(struct perf_walk *walk, size_t *next, uint64_t since_ns, uint64_t offset)
{
    struct perf_record record;
    for (size_t count = 1;; count++) {
        uint64_t time_ns;
        record_marks_skip(&records.marks, walk, next, since_ns, offset);
        if (!perf_walk_next(walk, &record, NULL))
            return count;
        assert_true(perf_record_time(&file, &record, &time_ns));
        if (record.offset == offset || (time_ns >= since_ns && record.number != 5)) {
            assert_true(record.offset == offset || time_ns == since_ns);
            return count;
        }
    }
}

static void test_little_is_read_up_to_a_time(void **state)
{
    struct perf_walk walk = perf_walk_begin(&file);
    size_t next = 0;
    (void)state;
    assert_in_range(read_on(&walk, &next, FIRST_NS + 5 * RECORDS_A_MARK + 7, UINT64_MAX), 1,
                    RECORDS_A_MARK + 8);
    assert_in_range(read_on(&walk, &next, UINT64_MAX, UINT64_MAX), 1, RECORDS_A_MARK + 2);
}

static void test_little_is_read_up_to_an_offset(void **state)
{
    struct perf_walk walk = perf_walk_begin(&file);
    size_t next = 0;
    (void)state;
    for (size_t i = 2; i < 8; i += 3) {
        uint64_t offset = records.marks.items[i].offset;
        assert_int_equal(read_on(&walk, &next, UINT64_MAX, offset), i == 2 ? 1 : RECORDS_A_MARK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reading_marks_every_so_many, begin, end),
        cmocka_unit_test_setup_teardown(test_little_is_read_up_to_a_time, begin, end),
        cmocka_unit_test_setup_teardown(test_little_is_read_up_to_an_offset, begin, end),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
