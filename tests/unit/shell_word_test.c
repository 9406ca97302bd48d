/* The paths in commands that messages advise: a shell reads each as one word, which is the path. */
#include "injector/text/shell_word.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void assert_word(const char *path, const char *wanted)
{
    char text[SHELL_WORD_BYTES];
    assert_string_equal(shell_word(text, path), wanted);
}

static void test_plain_paths_stay(void **state)
{
    (void)state;
    assert_word("perfjit.perf.data", "perfjit.perf.data");
    assert_word("/srv/a_b-c/1.2+3,4:5@6%7=8", "/srv/a_b-c/1.2+3,4:5@6%7=8");
    assert_word("caf\xc3\xa9/perf.data", "caf\xc3\xa9/perf.data");
    assert_word("-", "-"); /* standard input */
}

static void test_others_are_quoted(void **state)
{
    (void)state;
    assert_word("my app.perf.data", "'my app.perf.data'");
    assert_word("$(rm -r x);*", "'$(rm -r x);*'");
    assert_word("a'b", "'a'\\''b'");
    assert_word("~/a", "'~/a'");
    assert_word("", "''");
}

static void test_no_path_becomes_an_option(void **state)
{
    (void)state;
    assert_word("-o", "./-o");
    assert_word("-o x", "'./-o x'");
}

static void test_the_longest_path(void **state)
{
    static char path[2 * SHELL_WORD_BYTES];
    char text[SHELL_WORD_BYTES];
    (void)state;
    memset(path, ' ', PATH_MAX - 1);
    assert_int_equal(strlen(shell_word(text, path)), PATH_MAX + 1);
    memset(path, '\'', sizeof path - 1);
    assert_ptr_equal(shell_word(text, path), path); /* as it is, rather than cut */
    memset(path, '-', sizeof path - 1);
    assert_ptr_equal(shell_word(text, path), path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_paths_stay),
        cmocka_unit_test(test_others_are_quoted),
        cmocka_unit_test(test_no_path_becomes_an_option),
        cmocka_unit_test(test_the_longest_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
