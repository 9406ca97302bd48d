/* What perf says that it lost: which records count, and the sentence about it. */
#include "injector/recording/losses.h"

#include "injector/recording/records.h"
#include "tests/unit/profile_builder.h"

static void take(struct losses *losses, uint32_t type, uint16_t misc, uint64_t first,
                 uint64_t second, uint64_t third)
{
    uint8_t bytes[24];
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    sink_u64(&sink, first);
    sink_u64(&sink, second);
    sink_u64(&sink, third);
    losses_take(losses, type, misc, bytes, sizeof bytes);
}

static void take_samples(struct losses *losses, size_t count)
{
    for (size_t i = 0; i < count; i++)
        take(losses, PERF_RECORD_SAMPLE, PERF_MISC_USER, 0, 0, 0);
}

static void test_nothing_is_lost(void **state)
{
    (void)state;
    struct losses losses = {0};
    take_samples(&losses, 3);
    take(&losses, PERF_RECORD_COMM, 0, 5, 5, 5);
    take(&losses, PERF_RECORD_AUX, 0, 0, 4096, 2); /* it was overwritten on request */
    assert_false(losses_any(&losses));
    assert_true(losses_share(&losses) == 0);
}

static void test_both_kinds_are_added_up(void **state)
{
    (void)state;
    struct losses losses = {0};
    char text[LOSSES_TEXT_BYTES];
    take_samples(&losses, 100);
    take(&losses, PERF_RECORD_LOST, 0, 77, 20, 0);
    take(&losses, PERF_RECORD_LOST, 0, 78, 30, 0);
    take(&losses, PERF_RECORD_LOST_SAMPLES, 0, 300, 0, 0);
    assert_int_equal(losses.records, 50);
    assert_int_equal(losses.samples, 300);
    assert_int_equal(losses_samples(&losses), 300);
    assert_true(losses_share(&losses) == 0.75);
    losses_text(&losses, text, sizeof text);
    assert_non_null(
        strstr(text, "perf lost 300 samples, 75.0 % of all (LOST_SAMPLES 300, LOST 50):"));
}

/* A perf that was killed tells no LOST_SAMPLES; maps and names are among LOST's records. */
static void test_records_alone_are_samples_at_most(void **state)
{
    (void)state;
    struct losses losses = {0};
    char text[LOSSES_TEXT_BYTES];
    take_samples(&losses, 1);
    take(&losses, PERF_RECORD_LOST, 0, 77, 1, 0);
    losses_text(&losses, text, sizeof text);
    assert_non_null(strstr(text, "perf lost up to 1 sample, 50.0 % of all (LOST 1):"));
}

static void test_a_filter_loses_nothing(void **state)
{
    (void)state;
    struct losses losses = {0};
    take(&losses, PERF_RECORD_LOST_SAMPLES, 1 << 15, 300, 0, 0);
    assert_false(losses_any(&losses));
    take(&losses, PERF_RECORD_LOST_SAMPLES, 1 << 14, 300, 0, 0);
    assert_int_equal(losses.samples, 300);
}

static void test_a_trace_that_was_cut(void **state)
{
    (void)state;
    struct losses losses = {0};
    char text[LOSSES_TEXT_BYTES];
    take(&losses, PERF_RECORD_AUX, 0, 0, 4096, 1);
    take(&losses, PERF_RECORD_AUX, 0, 0, 4096, 3);
    assert_true(losses_any(&losses));
    assert_true(losses_share(&losses) == 0);
    losses_text(&losses, text, sizeof text);
    assert_non_null(strstr(text, "perf lost 2 parts of processor traces:"));
}

static void test_sums_do_not_wrap(void **state)
{
    (void)state;
    struct losses losses = {0};
    char text[LOSSES_TEXT_BYTES];
    take(&losses, PERF_RECORD_LOST, 0, 0, UINT64_MAX - 1, 0);
    take(&losses, PERF_RECORD_LOST, 0, 0, UINT64_MAX - 1, 0);
    take(&losses, PERF_RECORD_LOST_SAMPLES, 0, UINT64_MAX, 0, 0);
    take(&losses, PERF_RECORD_LOST_SAMPLES, 0, 1, 0, 0);
    take(&losses, PERF_RECORD_AUX, 0, 0, 0, 1);
    assert_true(losses.records == UINT64_MAX);
    assert_true(losses.samples == UINT64_MAX);
    losses_text(&losses, text, sizeof text);
    assert_non_null(strstr(text, "-g fp, helps"));
}

static void test_a_record_that_is_too_short(void **state)
{
    (void)state;
    struct losses losses = {0};
    const uint8_t bytes[24] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                               1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    losses_take(&losses, PERF_RECORD_LOST, 0, bytes, 15);
    losses_take(&losses, PERF_RECORD_LOST_SAMPLES, 0, bytes, 7);
    losses_take(&losses, PERF_RECORD_AUX, 0, bytes, 23);
    assert_false(losses_any(&losses));
}

static void test_the_records_of_a_file(void **state)
{
    (void)state;
    static struct profile_builder built;
    struct perf_file file;
    struct records records;
    struct findings findings = {0};
    profile_begin_one(&built);
    profile_sample(&built, 0, 10);
    size_t start = profile_begin_record(&built, PERF_RECORD_LOST, 0);
    sink_u64(&built.sink, 101);
    sink_u64(&built.sink, 9);
    profile_put_trailer(&built, 0, 4711, 11);
    profile_end_record(&built, start);
    profile_end_records(&built);
    profile_features(&built, NULL, 0);
    open_built_profile(&built, &file);
    assert_int_equal(records_read(&records, &file, &findings), 0);
    assert_int_equal(records.losses.records, 9);
    assert_int_equal(records.losses.taken, 1);
    records_free(&records);
    perf_file_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_lost),
        cmocka_unit_test(test_both_kinds_are_added_up),
        cmocka_unit_test(test_records_alone_are_samples_at_most),
        cmocka_unit_test(test_a_filter_loses_nothing),
        cmocka_unit_test(test_a_trace_that_was_cut),
        cmocka_unit_test(test_sums_do_not_wrap),
        cmocka_unit_test(test_a_record_that_is_too_short),
        cmocka_unit_test(test_the_records_of_a_file),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
