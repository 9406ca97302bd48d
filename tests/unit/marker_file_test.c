/* Spans of a program: lines of marker files, their names, and the moments that are in spans. */
#include "injector/log/spans/marker_file.h"

#include "injector/profile/profile_choice.h"
#include "tests/unit/scratch.h"

#include <stdlib.h>

static struct marker_spans spans;
static struct call_profile profile;

static int begin(void **state)
{
    (void)state;
    spans = (struct marker_spans){.count = 0};
    return call_profile_begin(&profile);
}

static int end(void **state)
{
    (void)state;
    marker_spans_free(&spans);
    call_profile_free(&profile);
    return 0;
}

static void add(const char *text, uint32_t pid, uint32_t tid)
{
    assert_int_equal(marker_spans_add(&spans, strdup(text), strlen(text), pid, tid), 0);
}

static void assert_span(size_t number, uint64_t from_ns, uint64_t to_ns, const char *name)
{
    assert_true(number < spans.count);
    const struct marker_span *span = &spans.items[number];
    assert_int_equal(span->from_ns, from_ns);
    assert_int_equal(span->to_ns, to_ns);
    assert_int_equal(span->name_bytes, strlen(name));
    assert_memory_equal(span->name, name, span->name_bytes);
}

static void reads_lines_of_begin_end_and_name(void **state)
{
    (void)state;
    add("100 200 GET /users\n150 150 an instant\r\n0 9223372036854775807 all\n300 400 no end", 7,
        8);
    assert_int_equal(spans.count, 4);
    assert_span(0, 100, 200, "GET /users");
    assert_span(1, 150, 150, "an instant");
    assert_span(2, 0, INT64_MAX, "all");
    assert_span(3, 300, 400, "no end");
    assert_int_equal(spans.items[3].pid, 7);
    assert_int_equal(spans.items[3].tid, 8);
    assert_int_equal(spans.wrong_lines, 0);
}

static void leaves_out_what_is_no_span(void **state)
{
    (void)state;
    add("200 100 backwards\n"
        "18446744073709551616 1 too large\n"
        "1 18446744073709551615 behind all time\n"
        "1 2\n1 2 \n 1 2 indented\n-1 2 negative\n1  2 two spaces\n1.5 2 fraction\nx\n1\n\n"
        "5 6 right\n"
        "7 8 to",
        1, 0);
    assert_int_equal(spans.count, 2);
    assert_span(0, 5, 6, "right");
    assert_span(1, 7, 8, "to");
    assert_int_equal(spans.wrong_lines, 11);
}

static void knows_a_marker_file_by_its_name(void **state)
{
    uint32_t pid = 1, tid = 1;
    (void)state;
    assert_true(marker_file_named("/tmp/marker-4711.txt", &pid, &tid));
    assert_int_equal(pid, 4711);
    assert_int_equal(tid, 0);
    assert_true(marker_file_named("marker-4711-4712.txt (deleted)", &pid, &tid));
    assert_int_equal(tid, 4712);
    static const char *const others[] = {
        "marker-.txt",   "marker-1",         "marker-1-.txt", "marker-1.txt.bak",
        "amarker-1.txt", "marker-1-2-3.txt", "marker- 1.txt", "marker-99999999999999999999.txt",
        "marker-+1.txt"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(marker_file_named(others[i], &pid, &tid));
}

/* ---- Moments ---- */

static uint32_t add_thread(uint32_t pid, uint32_t tid)
{
    const struct profile_thread thread = {pid, tid, 0, 0};
    return call_profile_add_thread(&profile, &thread);
}

static void are_of_one_thread_of_a_process_or_of_all(void **state)
{
    struct span_moments moments;
    bool found;
    (void)state;
    const uint32_t first = add_thread(7, 7), own = add_thread(7, 8), again = add_thread(7, 9),
                   other = add_thread(9, 9), last = add_thread(10, 10);
    add("100 200 GET a\n180 300 GET b\n400 500 other\n", 7, 0);
    add("150 350 GET c\n", 7, 8);
    add("1000 1100 GET d\n", 0, 0);
    assert_int_equal(profile_spans_add(&profile, &spans), 0);
    assert_int_equal(span_moments_find(&moments, &profile, "GET *", &found), 0);
    assert_true(found);
    assert_int_equal(span_moments_within(&moments, first, 0, 900), 200);
    assert_int_equal(span_moments_within(&moments, own, 0, 900), 250);
    assert_int_equal(span_moments_within(&moments, again, 0, 900), 200);
    assert_int_equal(span_moments_within(&moments, other, 0, 900), 0);
    for (uint32_t thread = first; thread <= last; thread++)
        assert_int_equal(span_moments_within(&moments, thread, 1050, 2000), 50);
    assert_true(span_moments_have(&moments, first, 100));
    assert_true(span_moments_have(&moments, first, 299));
    assert_false(span_moments_have(&moments, first, 300));
    assert_false(span_moments_have(&moments, first, 99));
    assert_false(span_moments_have(&moments, first, 450));
    span_moments_free(&moments);
    assert_int_equal(span_moments_find(&moments, &profile, "GET", &found), 0);
    assert_false(found);
    span_moments_free(&moments);
}

/* A wait is counted as far as it is in the range and in spans; a sample is in them or not. */
static void a_wait_has_a_part_in_a_range_and_in_spans(void **state)
{
    struct span_moments moments;
    bool found;
    (void)state;
    const uint32_t thread = add_thread(7, 7);
    add("100 200 a\n300 400 a\n", 7, 0);
    assert_int_equal(profile_spans_add(&profile, &spans), 0);
    assert_int_equal(span_moments_find(&moments, &profile, "a", &found), 0);
    struct profile_choice choice = {.event = PROFILE_ALL, .weight = WEIGHT_PERIOD};
    const struct call_sample wait = {.time_ns = 50, .period = 300, .thread = thread, .waits = true};
    const struct call_sample sample = {.time_ns = 50, .period = 300, .thread = thread};
    assert_int_equal(profile_choice_weight(&choice, &wait), 300);
    choice.from_ns = 40;
    choice.to_ns = 320;
    assert_int_equal(profile_choice_weight(&choice, &wait), 270);
    assert_int_equal(profile_choice_weight(&choice, &sample), 300);
    choice.moments = &moments;
    assert_int_equal(profile_choice_weight(&choice, &wait), 120);
    assert_true(profile_choice_has(&choice, &wait));
    assert_false(profile_choice_has(&choice, &sample));
    choice.from_ns = 200;
    choice.to_ns = 300;
    assert_false(profile_choice_has(&choice, &wait));
    span_moments_free(&moments);
}

static void latency_is_the_period_by_as_many_as_ran(void **state)
{
    const struct profile_choice choice = {.event = PROFILE_ALL, .weight = WEIGHT_LATENCY};
    static const struct {
        uint64_t period;
        uint32_t running;
        uint64_t weight;
    } cases[] = {
        {1000, 0, 1000}, {1000, 1, 1000}, {1000, 4, 250}, {1001, 4, 250},
        {1002, 4, 251},  {1, 2, 1},       {1, 3, 0},      {UINT64_MAX, 2, UINT64_C(1) << 63}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct call_sample sample = {.period = cases[i].period, .running = cases[i].running};
        assert_int_equal(profile_choice_weight(&choice, &sample), cases[i].weight);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(reads_lines_of_begin_end_and_name),
        TEST(leaves_out_what_is_no_span),
        TEST(knows_a_marker_file_by_its_name),
        TEST(are_of_one_thread_of_a_process_or_of_all),
        TEST(a_wait_has_a_part_in_a_range_and_in_spans),
        TEST(latency_is_the_period_by_as_many_as_ran),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
