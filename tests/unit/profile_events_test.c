/* The events of a profile: which have samples, and periods that no counter can have. */
#include "injector/profile/profile_events.h"

#include "injector/recording/perf_data/event_names.h"
#include "injector/recording/perf_data/perf_format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MANY = 300000 };

static void make(struct call_profile *profile, size_t events)
{
    const struct profile_event event = {0};
    assert_int_equal(call_profile_begin(profile), 0);
    for (size_t i = 0; i < events; i++)
        assert_int_equal(call_profile_add_event(profile, &event), 0);
}

static void add(struct call_profile *profile, uint32_t event, uint64_t period)
{
    const struct call_sample sample = {.event = event, .period = period};
    assert_int_equal(call_profile_add_sample(profile, &sample), 0);
}

/* Event by event this takes minutes. */
static void test_as_many_events_as_samples(void **state)
{
    struct call_profile profile;
    (void)state;
    make(&profile, MANY);
    for (size_t i = 0; i < MANY; i++)
        add(&profile, i % 2 ? 7 : 9, 1);
    bool *has = profile_events_with_samples(&profile);
    assert_non_null(has);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(has[i], i == 7 || i == 9);
    free(has);
    call_profile_free(&profile);
}

static void test_periods_that_add_up_stay(void **state)
{
    struct call_profile profile;
    bool wrong = true;
    (void)state;
    make(&profile, 2);
    add(&profile, 0, (uint64_t)INT64_MAX - 2);
    add(&profile, 0, 1);
    add(&profile, 1, (uint64_t)INT64_MAX - 1);
    assert_int_equal(profile_events_check_periods(&profile, &wrong), 0);
    assert_false(wrong);
    assert_int_equal(profile.samples[0].period, (uint64_t)INT64_MAX - 2);
    assert_int_equal(profile.samples[2].period, (uint64_t)INT64_MAX - 1);
    call_profile_free(&profile);
}

/* Their sum wraps, in the worst case to 0: those of that event are none. */
static void test_periods_that_can_not_be(void **state)
{
    static const uint64_t wrongs[][2] = {{UINT64_C(1) << 63, UINT64_C(1) << 63},
                                         {UINT64_MAX, 1},
                                         {UINT64_C(1) << 62, UINT64_C(1) << 62}};
    (void)state;
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        struct call_profile profile;
        bool wrong = false;
        make(&profile, 2);
        add(&profile, 0, wrongs[i][0]);
        add(&profile, 1, 5);
        add(&profile, 0, wrongs[i][1]);
        assert_int_equal(profile_events_check_periods(&profile, &wrong), 0);
        assert_true(wrong);
        assert_int_equal(profile.samples[0].period, 0);
        assert_int_equal(profile.samples[1].period, 5);
        assert_int_equal(profile.samples[2].period, 0);
        call_profile_free(&profile);
    }
}

static void assert_named(uint32_t type, uint64_t config, uint64_t flags, const char *wanted)
{
    uint8_t attr[PERF_ATTR_MIN_BYTES] = {0};
    char name[EVENT_NAME_BYTES];
    struct byte_sink sink = byte_sink_over(attr, sizeof attr);
    sink_u32(&sink, type);
    perf_put_u64(attr + PERF_ATTR_CONFIG, config);
    perf_put_u64(attr + PERF_ATTR_FLAGS, flags);
    event_name_of_attr(name, attr, sizeof attr);
    assert_string_equal(name, wanted);
}

/* perf evlist's names of a recording whose perf was killed, without "H" and "G". */
static void test_names_by_the_attribute(void **state)
{
    (void)state;
    assert_named(0, 0, 0, "cycles");
    assert_named(0, 1, PERF_ATTR_NO_KERNEL, "instructions:u");
    assert_named(0, 9, PERF_ATTR_NO_USER, "ref-cycles:k");
    assert_named(1, 0, PERF_ATTR_NO_KERNEL | PERF_ATTR_FREQ, "cpu-clock:u");
    assert_named(1, 9, PERF_ATTR_NO_USER | PERF_ATTR_NO_KERNEL, "dummy");
    assert_named(1, PERF_SOFTWARE_OUTPUT, 0, "");
    assert_named(0, UINT64_MAX, 0, "");
    assert_named(PERF_TYPE_TRACEPOINT, 0, 0, "");
}

/* perf takes what stands there for the period, be it a frequency. */
static void test_periods_that_samples_do_not_tell(void **state)
{
    uint8_t attr[PERF_ATTR_MIN_BYTES] = {0};
    struct perf_event event = {.attr = {0, sizeof attr}};
    const struct perf_file file = {
        .data = attr, .size = sizeof attr, .events = &event, .event_count = 1};
    (void)state;
    assert_int_equal(profile_event_period(&file, 0), 0);
    perf_put_u64(attr + PERF_ATTR_PERIOD, 4000);
    assert_int_equal(profile_event_period(&file, 0), 4000);
    perf_put_u64(attr + PERF_ATTR_FLAGS, PERF_ATTR_FREQ);
    assert_int_equal(profile_event_period(&file, 0), 4000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_many_events_as_samples),
                                       cmocka_unit_test(test_periods_that_add_up_stay),
                                       cmocka_unit_test(test_periods_that_can_not_be),
                                       cmocka_unit_test(test_names_by_the_attribute),
                                       cmocka_unit_test(test_periods_that_samples_do_not_tell)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
