/* The file for pprof: the lines of a location and the length of the recording.  Its size grows with
 * its contents, however deep calls are inlined in each other. */
#include "injector/profile/export/export_format.h"
#include "jitdump/format/byte_cursor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

enum { GZIP_WINDOW = 15 + 16, MOST_BYTES = 64 << 20, TEXT_BYTES = 1 << 14 };

/* Fields of a Profile, a Sample, a Location and a Line, as pprof.c has them. */
enum {
    PROFILE_SAMPLE = 2,
    PROFILE_LOCATION = 4,
    PROFILE_DURATION = 10,
    SAMPLE_LOCATIONS = 1,
    LOCATION_ID = 1,
    LOCATION_LINE = 4,
    LINE_FUNCTION = 1,
    LINE_NUMBER = 2
};

static struct call_profile profile;
static struct profile_choice choice;
static uint8_t *message;
static size_t message_bytes;

static int begin(void **state)
{
    const struct profile_thread thread = {1, 1, 0, 0};
    const struct profile_event event = {0};
    (void)state;
    choice = (struct profile_choice){.weight = WEIGHT_PERIOD};
    return call_profile_begin(&profile) || call_profile_add_thread(&profile, &thread) != 0 ||
           call_profile_add_event(&profile, &event) || call_profile_add_event(&profile, &event);
}

static int end(void **state)
{
    (void)state;
    free(message);
    message = NULL;
    call_profile_free(&profile);
    return 0;
}

/* ---- A profile ---- */

/* Function number N, from 1 on: it begins at line 100 N. */
static uint32_t add_function(bool inlined)
{
    char name[16];
    uint32_t number = (uint32_t)profile.frame_count + 1;
    snprintf(name, sizeof name, "f%u", number);
    const struct call_frame frame = {.kind = FRAME_JIT,
                                     .name = call_profile_add_string(&profile, name, strlen(name)),
                                     .line = 100 * number,
                                     .inlined = inlined};
    uint32_t added = call_profile_add_frame(&profile, &frame);
    assert_int_equal(added, number - 1);
    return added;
}

static void add_sample(uint32_t node, uint32_t event, uint64_t time)
{
    const struct call_sample sample = {.node = node, .period = 1, .event = event, .time_ns = time};
    assert_int_equal(call_profile_add_sample(&profile, &sample), 0);
}

static void export(void)
{
    struct profile_functions functions = {0};
    struct profile_totals totals = {0};
    char *packed = NULL;
    size_t packed_bytes = 0;
    assert_int_equal(profile_functions_find(&functions, &profile), 0);
    assert_int_equal(profile_totals_count(&totals, &profile, &functions, &choice), 0);
    const struct export_request request = {&profile, &functions, &totals, choice, "test"};
    FILE *stream = open_memstream(&packed, &packed_bytes);
    assert_int_equal(export_pprof(&request, stream), 0);
    fclose(stream);
    z_stream unpacker = {.next_in = (uint8_t *)packed, .avail_in = (uInt)packed_bytes};
    message = malloc(MOST_BYTES);
    assert_non_null(message);
    unpacker.next_out = message;
    unpacker.avail_out = MOST_BYTES;
    assert_int_equal(inflateInit2(&unpacker, GZIP_WINDOW), Z_OK);
    assert_int_equal(inflate(&unpacker, Z_FINISH), Z_STREAM_END);
    message_bytes = unpacker.total_out;
    inflateEnd(&unpacker);
    free(packed);
    profile_totals_free(&totals);
    profile_functions_free(&functions);
}

/* ---- A message ---- */

/* The next field of the message: its number, and its value or its bytes.  Returns false at the end.
 */
static bool next_field(struct byte_cursor *cursor, uint64_t *number, uint64_t *value,
                       struct byte_cursor *bytes)
{
    if (!cursor_left(cursor))
        return false;
    uint64_t key = cursor_uleb(cursor);
    *number = key >> 3;
    *value = cursor_uleb(cursor);
    if ((key & 7) == 2) {
        const uint8_t *at = cursor_bytes(cursor, (size_t)*value);
        *bytes = byte_cursor_over(at, (size_t)*value, false);
    }
    assert_false(cursor->failed);
    return true;
}

/* The number in field WANTED of the message, or 0. */
static uint64_t number_in(struct byte_cursor cursor, uint64_t wanted)
{
    uint64_t number, value;
    struct byte_cursor bytes;
    while (next_field(&cursor, &number, &value, &bytes))
        if (number == wanted)
            return value;
    return 0;
}

/* The same of a field of bytes, of which there is one. */
static struct byte_cursor bytes_in(struct byte_cursor cursor, uint64_t wanted)
{
    uint64_t number, value;
    struct byte_cursor bytes, found = {0};
    size_t count = 0;
    while (next_field(&cursor, &number, &value, &bytes)) {
        found = number == wanted ? bytes : found;
        count += number == wanted;
    }
    assert_int_equal(count, 1);
    return found;
}

static struct byte_cursor whole_message(void)
{
    return byte_cursor_over(message, message_bytes, false);
}

/* Add " f2:7" for each line of LOCATION: the function, and the number of the line. */
static void print_lines(struct byte_cursor location, char *text)
{
    uint64_t number, value;
    struct byte_cursor bytes;
    while (next_field(&location, &number, &value, &bytes))
        if (number == LOCATION_LINE)
            snprintf(text + strlen(text), TEXT_BYTES - strlen(text), " f%u:%u",
                     (unsigned)number_in(bytes, LINE_FUNCTION),
                     (unsigned)number_in(bytes, LINE_NUMBER));
}

static void print_location(uint64_t id, char *text)
{
    struct byte_cursor cursor = whole_message(), bytes;
    uint64_t number, value;
    size_t found = 0;
    while (next_field(&cursor, &number, &value, &bytes))
        if (number == PROFILE_LOCATION && number_in(bytes, LOCATION_ID) == id && !found++)
            print_lines(bytes, text);
    assert_int_equal(found, 1);
}

/* The only sample's locations, the innermost first, are these: each has a bar before it. */
static void assert_stack(const char *expected)
{
    static char text[TEXT_BYTES];
    struct byte_cursor ids = bytes_in(bytes_in(whole_message(), PROFILE_SAMPLE), SAMPLE_LOCATIONS);
    text[0] = '\0';
    while (cursor_left(&ids)) {
        strcat(text, text[0] ? " |" : "|");
        print_location(cursor_uleb(&ids), text);
    }
    assert_string_equal(text, expected);
}

static void assert_duration(uint64_t duration_ns)
{
    export();
    assert_int_equal(number_in(whole_message(), PROFILE_DURATION), duration_ns);
    free(message);
    message = NULL;
}

/* ---- Lines ---- */

static void test_a_call_without_a_line_is_where_its_function_begins(void **state)
{
    (void)state;
    uint32_t outer = add_function(false), inner = add_function(false);
    uint32_t node = call_profile_add_node(&profile, 0, outer);
    add_sample(call_profile_add_node(&profile, node, inner), 0, 1);
    export();
    assert_stack("| f2:200 | f1:100");
}

static void test_callers_have_the_lines_of_their_calls(void **state)
{
    (void)state;
    uint32_t outer = add_function(false), inner = add_function(false);
    uint32_t node = call_profile_add_line(&profile, 0, outer, 107);
    node = call_profile_add_line(&profile, node, inner, 209);
    node = call_profile_add_line(&profile, node, inner, 0);
    add_sample(call_profile_add_line(&profile, node, outer, 101), 0, 1);
    export();
    assert_stack("| f1:101 | f2:200 | f2:209 | f1:107");
}

/* The inlined ones are in the location of what they are in, each with its own line. */
static void test_inlined_callers_have_the_lines_of_their_calls(void **state)
{
    (void)state;
    uint32_t outer = add_function(false), middle = add_function(true), inner = add_function(true);
    uint32_t node = call_profile_add_line(&profile, 0, outer, 103);
    node = call_profile_add_line(&profile, node, outer, 105);
    node = call_profile_add_line(&profile, node, middle, 0);
    add_sample(call_profile_add_line(&profile, node, inner, 311), 0, 1);
    export();
    assert_stack("| f3:311 f2:200 f1:105 | f1:103");
}

static void test_an_inlined_call_that_nothing_is_around_stands_alone(void **state)
{
    (void)state;
    uint32_t inner = add_function(true);
    add_sample(call_profile_add_line(&profile, 0, inner, 111), 0, 1);
    export();
    assert_stack("| f1:111");
}

/* Of 70 inlined in each other no location lists more than 64, and none is lost. */
static void test_70_inlined_calls_are_in_two_locations(void **state)
{
    static char expected[TEXT_BYTES];
    uint32_t node = call_profile_add_node(&profile, 0, add_function(false));
    (void)state;
    uint32_t inner = add_function(true);
    for (uint32_t i = 1; i <= 70; i++)
        node = call_profile_add_line(&profile, node, inner, 1000 + i);
    add_sample(node, 0, 1);
    export();
    expected[0] = '|';
    for (uint32_t i = 70; i > 0; i--)
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), " f2:%u%s",
                 1000 + i, i == 64 ? " |" : "");
    strcat(expected, " f1:100");
    assert_stack(expected);
}

/* ---- The duration ---- */

static void test_the_duration_is_from_the_first_sample_to_the_last(void **state)
{
    static const uint64_t times[] = {500, 300, 900, 700};
    (void)state;
    uint32_t node = call_profile_add_node(&profile, 0, add_function(false));
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        add_sample(node, 0, times[i]);
    assert_duration(600);
}

static void test_samples_that_were_not_chosen_take_no_time(void **state)
{
    (void)state;
    uint32_t node = call_profile_add_node(&profile, 0, add_function(false));
    add_sample(node, 1, 100);
    add_sample(node, 0, 300);
    add_sample(node, 0, 350);
    add_sample(node, 1, 900);
    assert_duration(50);
    choice.event = PROFILE_ALL;
    assert_duration(800);
}

static void test_a_sample_whose_time_is_not_known_takes_no_time(void **state)
{
    (void)state;
    uint32_t node = call_profile_add_node(&profile, 0, add_function(false));
    assert_duration(0);
    add_sample(node, 0, 0);
    assert_duration(0);
    add_sample(node, 0, 300);
    assert_duration(0);
    add_sample(node, 0, 350);
    assert_duration(50);
}

/* ---- Size ---- */

/* How many bytes pprof's message has for a stack of DEPTH calls, inlined in each other. */
static size_t bytes_of_inlined(uint32_t depth)
{
    uint32_t node = 0;
    assert_int_equal(begin(NULL), 0);
    uint32_t outer = add_function(false), inner = add_function(true);
    for (uint32_t i = 0; i < depth; i++)
        node = call_profile_add_node(&profile, node, i ? inner : outer);
    add_sample(node, 0, 1);
    export();
    end(NULL);
    return message_bytes;
}

static void test_grows_with_the_stack(void **state)
{
    (void)state;
    size_t some = bytes_of_inlined(500), more = bytes_of_inlined(4000);
    assert_true(more < some * 10);
}

#define PPROF_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PPROF_TEST(test_a_call_without_a_line_is_where_its_function_begins),
        PPROF_TEST(test_callers_have_the_lines_of_their_calls),
        PPROF_TEST(test_inlined_callers_have_the_lines_of_their_calls),
        PPROF_TEST(test_an_inlined_call_that_nothing_is_around_stands_alone),
        PPROF_TEST(test_70_inlined_calls_are_in_two_locations),
        PPROF_TEST(test_the_duration_is_from_the_first_sample_to_the_last),
        PPROF_TEST(test_samples_that_were_not_chosen_take_no_time),
        PPROF_TEST(test_a_sample_whose_time_is_not_known_takes_no_time),
        cmocka_unit_test(test_grows_with_the_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
