/* Times of samples in the formats that show when something ran: from the first one that is known.
 */
#include "injector/profile/export/export_format.h"
#include "injector/profile/flamegraph/flamegraph_page.h"
#include "injector/text/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#define MS UINT64_C(1000000)

static struct call_profile profile;
static struct profile_functions functions;
static struct profile_totals totals;
static const struct profile_choice choice = {.weight = WEIGHT_PERIOD};
static char *text;
static size_t text_bytes;

static int begin(void **state)
{
    const struct profile_thread thread = {1, 1, 0, 0};
    const struct profile_event event = {0};
    (void)state;
    return call_profile_begin(&profile) || call_profile_add_thread(&profile, &thread) != 0 ||
           call_profile_add_event(&profile, &event);
}

static int end(void **state)
{
    (void)state;
    free(text);
    text = NULL;
    profile_totals_free(&totals);
    profile_functions_free(&functions);
    call_profile_free(&profile);
    return 0;
}

static void add_samples(const uint64_t *times, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct call_sample sample = {.period = 1, .time_ns = times[i]};
        assert_int_equal(call_profile_add_sample(&profile, &sample), 0);
    }
    assert_int_equal(profile_functions_find(&functions, &profile), 0);
    assert_int_equal(profile_totals_count(&totals, &profile, &functions, &choice), 0);
}

static void export_it(void)
{
    const struct export_request request = {&profile, &functions, &totals, choice, "test"};
    FILE *stream = open_memstream(&text, &text_bytes);
    assert_int_equal(export_firefox(&request, stream), 0);
    fclose(stream);
}

/* TEXT is the page; then it is what the page's data is packed from. */
static void unpack(void)
{
    enum { MOST_BYTES = 4096 };
    static const char mark[] = "id=\"data\">\n";
    const char *digit = strstr(text, mark) + sizeof mark - 1;
    uint8_t packed[MOST_BYTES];
    uLong count = 0;
    char *unpacked = calloc(MOST_BYTES, 1);
    uLongf unpacked_bytes = MOST_BYTES - 1;
    uint32_t bits = 0;
    for (unsigned i = 1; base64_value(*digit) >= 0 && count < MOST_BYTES; i++) {
        bits = bits << 6 | (uint32_t)base64_value(*digit++);
        if (i % 4 != 1) /* a digit is 6 bits: from the second on each ends a byte */
            packed[count++] = (uint8_t)(bits >> (i % 4 == 2 ? 4 : i % 4 == 3 ? 2 : 0));
    }
    assert_non_null(unpacked);
    assert_int_equal(uncompress((Bytef *)unpacked, &unpacked_bytes, packed, count), Z_OK);
    free(text);
    text = unpacked;
}

static void write_page(void)
{
    const struct flamegraph_request request = {
        .profile = &profile, .totals = &totals, .choice = choice, .title = "test"};
    FILE *stream = open_memstream(&text, &text_bytes);
    assert_int_equal(flamegraph_page_write(&request, stream), 0);
    fclose(stream);
    unpack();
}

static void assert_says(const char *wanted)
{
    if (!strstr(text, wanted))
        fail_msg("'%s' is not in '%s'", wanted, text);
}

static const uint64_t with_one_that_is_not_known[] = {7 * MS, 0, 9 * MS};
static const uint64_t none_is_known[] = {0, 0};

static void test_firefox(void **state)
{
    (void)state;
    add_samples(with_one_that_is_not_known, 3);
    export_it();
    assert_says("\"time\":[0.000000,0.000000,2.000000]");
}

static void test_firefox_without_times(void **state)
{
    (void)state;
    add_samples(none_is_known, 2);
    export_it();
    assert_says("\"time\":[0.000000,0.000000]");
}

/* Each less the one before. */
static void test_page(void **state)
{
    (void)state;
    add_samples(with_one_that_is_not_known, 3);
    write_page();
    assert_says("\"time\":[0,0,2000]");
}

static void test_page_without_times(void **state)
{
    (void)state;
    add_samples(none_is_known, 2);
    write_page();
    assert_says("\"time\":[0,0]");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_firefox),
        TEST(test_firefox_without_times),
        TEST(test_page),
        TEST(test_page_without_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
