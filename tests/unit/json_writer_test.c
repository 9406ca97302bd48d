/* JSON: commas and lines, what a text may hold, and which numbers are strings. */
#include "injector/text/json_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static struct json_writer json;
static char *text;
static size_t text_bytes;

static int begin(void **state)
{
    (void)state;
    json = (struct json_writer){.stream = open_memstream(&text, &text_bytes)};
    return json.stream ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    free(text);
    return 0;
}

static void assert_written(const char *wanted)
{
    fclose(json.stream);
    assert_string_equal(text, wanted);
}

static void put_all(void)
{
    json_begin_object(&json, NULL);
    json_text(&json, "a\"", "b");
    json_begin_array(&json, "list");
    json_number(&json, NULL, 1);
    json_difference(&json, NULL, -2);
    json_begin_array(&json, NULL);
    json_end_array(&json);
    json_begin_object(&json, NULL);
    json_end_object(&json);
    json_end_array(&json);
    json_flag(&json, "yes", true);
    json_flag(&json, "no", false);
    json_nothing(&json, "none");
    json_fraction(&json, "real", 1.0 / 3, 6);
    json_decimal(&json, "decimal", 1.5, 3);
    json_end_object(&json);
}

static void test_commas(void **state)
{
    (void)state;
    put_all();
    assert_written("{\"a\\\"\":\"b\",\"list\":[1,-2,[],{}],\"yes\":true,\"no\":false,"
                   "\"none\":null,\"real\":0.333333,\"decimal\":1.500}\n");
}

static void test_in_lines(void **state)
{
    (void)state;
    json.in_lines = true;
    json_begin_object(&json, NULL);
    json_number(&json, "a", 1);
    json_begin_array(&json, "b");
    json_number(&json, NULL, 2);
    json_number(&json, NULL, 3);
    json_end_array(&json);
    json_end_object(&json);
    assert_written("{\"a\": 1,\n\"b\": [2,\n3]}\n");
}

static void test_some_lines(void **state)
{
    (void)state;
    json_begin_array(&json, NULL);
    json_line(&json, 2);
    json_number(&json, NULL, 1);
    json_line(&json, 0);
    json_number(&json, NULL, 2);
    json_end_array(&json);
    assert_written("[\n  1,\n2]\n");
}

static void test_one_after_another(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        json_begin_object(&json, NULL);
        json_end_object(&json);
    }
    assert_written("{}\n{}\n");
}

static const char any[] = "a\"\\\x1b\n\xc2\x9b\xe2\x80\xae\xff€<\x7f\0z";

static void test_text(void **state)
{
    (void)state;
    json_bytes(&json, NULL, any, sizeof any - 1);
    assert_written("\"a\\\"\\\\\\u001b\\u000a\\u009b\\u202e\\ufffd€<\\u007f\\u0000z\"");
}

static void test_text_in_a_page(void **state)
{
    (void)state;
    json.viewed = true;
    json_text(&json, NULL, "</script>\xe2\x80\xa8");
    assert_written("\"\\u003c/script>\\u2028\"");
}

/* Readers of JSON get the text itself; people who look at a page see what is in it. */
static void test_hidden_text(void **state)
{
    (void)state;
    json_text(&json, NULL, "\u202e\u200b\U000e0041");
    json.shown = true;
    json_text(&json, NULL, "\u202e\x1b\\\xff");
    assert_written("\"\\u202e\\u200b\\udb40\\udc41\",\"\\\\xe2\\\\x80\\\\xae\\\\x1b\\\\\\ufffd\"");
}

static void put_numbers(void)
{
    json_begin_array(&json, NULL);
    json_number(&json, NULL, 0);
    json_number(&json, NULL, UINT64_C(9007199254740992));
    json_number(&json, NULL, UINT64_C(9007199254740993));
    json_number(&json, NULL, UINT64_MAX);
    json_end_array(&json);
}

static void test_differences(void **state)
{
    (void)state;
    json_begin_array(&json, NULL);
    json_difference(&json, NULL, 0);
    json_difference(&json, NULL, -1);
    json_difference(&json, NULL, -10);
    json_difference(&json, NULL, INT64_MAX);
    json_difference(&json, NULL, INT64_MIN);
    json_end_array(&json);
    assert_written("[0,-1,-10,9223372036854775807,-9223372036854775808]\n");
}

static void test_numbers_are_exact(void **state)
{
    (void)state;
    put_numbers();
    assert_written("[0,9007199254740992,\"9007199254740993\",\"18446744073709551615\"]\n");
}

static void test_numbers_of_viewers_are_numbers(void **state)
{
    (void)state;
    json.viewed = true;
    put_numbers();
    assert_written("[0,9007199254740992,9007199254740993,18446744073709551615]\n");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_commas),
        TEST(test_in_lines),
        TEST(test_some_lines),
        TEST(test_one_after_another),
        TEST(test_text),
        TEST(test_text_in_a_page),
        TEST(test_hidden_text),
        TEST(test_differences),
        TEST(test_numbers_are_exact),
        TEST(test_numbers_of_viewers_are_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
