/* What a person reads: printable UTF-8 as it is, all else escaped. */
#include "injector/text/printable_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static void assert_printed(const char *text, const char *wanted)
{
    char *copy = printable_copy(text);
    assert_non_null(copy);
    assert_string_equal(copy, wanted);
    free(copy);
}

static void test_printable_text_stays(void **state)
{
    (void)state;
    assert_printed("", "");
    assert_printed("/tmp/jit-1.dump: \"a\\b\" ~", "/tmp/jit-1.dump: \"a\\b\" ~");
    assert_printed("größer € 中文 \xf0\x9f\x98\x80 \xc2\xa0",
                   "größer € 中文 \xf0\x9f\x98\x80 \xc2\xa0");
}

static void test_controls_are_escaped(void **state)
{
    (void)state;
    assert_printed("\x1b[2J\a\t\n\r\x7f", "\\x1b[2J\\x07\\x09\\x0a\\x0d\\x7f");
    assert_printed("csi \xc2\x9b"
                   "31m",
                   "csi \\xc2\\x9b31m");
}

static void test_text_in_another_order_is_escaped(void **state)
{
    (void)state;
    assert_printed("\xe2\x80\xae", "\\xe2\\x80\\xae"); /* U+202E */
    assert_printed("\xe2\x81\xa6", "\\xe2\\x81\\xa6"); /* U+2066 */
    assert_printed("\xe2\x80\xa8", "\\xe2\\x80\\xa8"); /* U+2028 */
    assert_printed("\xe2\x80\xb0", "\xe2\x80\xb0");    /* U+2030, per mille */
    assert_printed("\u061c\u200e\u200f", "\\xd8\\x9c\\xe2\\x80\\x8e\\xe2\\x80\\x8f");
}

/* Each range's ends, and what is beside it. */
static void test_invisible_text_is_escaped(void **state)
{
    (void)state;
    assert_printed("\u00ad\u00ac\u00ae", "\\xc2\\xad\u00ac\u00ae");
    assert_printed("\u200a\u200b\u200d\u2010", "\u200a\\xe2\\x80\\x8b\\xe2\\x80\\x8d\u2010");
    assert_printed("\u205f\u2060\u206f\u2070", "\u205f\\xe2\\x81\\xa0\\xe2\\x81\\xaf\u2070");
    assert_printed("\ufdff\ufe0f\ufe10", "\ufdff\\xef\\xb8\\x8f\ufe10");
    assert_printed("\U000dffff\U000e0000\U000e0fff\U000e1000",
                   "\U000dffff\\xf3\\xa0\\x80\\x80\\xf3\\xa0\\xbf\\xbf\U000e1000");
    assert_true(printable_is("gr\u00f6\u00dfe"));
    assert_false(printable_is("gr\u00f6\u200b\u00dfe"));
    assert_false(printable_is("a\tb"));
}

static void test_what_is_no_utf8_is_escaped(void **state)
{
    (void)state;
    assert_printed("\xff\xfe", "\\xff\\xfe");
    assert_printed("cut \xe2\x82", "cut \\xe2\\x82");
    assert_printed("\xc0\xaf", "\\xc0\\xaf");          /* overlong */
    assert_printed("\xed\xa0\x80", "\\xed\\xa0\\x80"); /* a surrogate */
}

static void test_a_line_is_one(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    printable_line(stream, "perfjit: %s: %d", "two\nlines", 7);
    assert_int_equal(fclose(stream), 0);
    assert_string_equal(text, "perfjit: two\\x0alines: 7\n");
    free(text);
}

static void test_a_long_line_is_whole(void **state)
{
    (void)state;
    for (int length = 1000; length < 1050; length++) {
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);
        assert_non_null(stream);
        printable_line(stream, "%0*d", length, 7);
        assert_int_equal(fclose(stream), 0);
        assert_int_equal(size, length + 1);
        assert_string_equal(text + size - 3, "07\n");
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_printable_text_stays),
        cmocka_unit_test(test_controls_are_escaped),
        cmocka_unit_test(test_text_in_another_order_is_escaped),
        cmocka_unit_test(test_invisible_text_is_escaped),
        cmocka_unit_test(test_what_is_no_utf8_is_escaped),
        cmocka_unit_test(test_a_line_is_one),
        cmocka_unit_test(test_a_long_line_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
