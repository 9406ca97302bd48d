/* Names fit to print. */
#include "injector/text/code_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static void assert_cleaned(const char *name, const char *wanted)
{
    char *cleaned = code_name_printable(name, strlen(name));
    assert_int_equal(code_name_is_printable(name, strlen(name)), strcmp(name, wanted) == 0);
    assert_string_equal(cleaned, wanted);
    assert_true(code_name_is_printable(cleaned, strlen(cleaned)));
    free(cleaned);
}

static void test_names_become_fit_to_print(void **state)
{
    (void)state;
    assert_cleaned("", "");
    assert_cleaned("LazyCompile:*fib work.js:1:13", "LazyCompile:*fib work.js:1:13");
    assert_cleaned("gr\xc3\xb6\xc3\x9f"
                   "e \xf0\x9f\x98\x80",
                   "gr\xc3\xb6\xc3\x9f"
                   "e \xf0\x9f\x98\x80");
    assert_cleaned("two\nlines\tand \033[31m\x7f", "two lines and ?[31m?");
    assert_cleaned("C1: \xc2\x9b"
                   "31m",
                   "C1: ??31m");
    assert_cleaned("\xff \xc3( \xed\xa0\x80 \xc0\x80 \xe2\x82", "? ?( ??? ?? ??");
    assert_cleaned("\xc2\xa0\xf4\x8f\xbf\xbf\xf4\x90\x80\x80", "\xc2\xa0\xf4\x8f\xbf\xbf????");
}

/* They stay in names, and outputs escape them. */
static void test_hidden_characters_stay(void **state)
{
    (void)state;
    assert_cleaned("a\u202eb\u200b\U000e0041", "a\u202eb\u200b\U000e0041");
}

/* A character that the name's end cuts is not completed by what stands behind it. */
static void test_names_are_read_up_to_their_end(void **state)
{
    (void)state;
    assert_true(code_name_is_printable("a\xc3\xb6", 3));
    assert_false(code_name_is_printable("a\xc3\xb6", 2));
    assert_true(code_name_is_printable("ab\n", 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_become_fit_to_print),
        cmocka_unit_test(test_hidden_characters_stay),
        cmocka_unit_test(test_names_are_read_up_to_their_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
