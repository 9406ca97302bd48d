/* Deopts as an image keeps them: what was written is read, and broken lines are left out. */
#include "injector/log/code/deopt_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_text(struct line_text text, const char *wanted)
{
    assert_int_equal(text.bytes, strlen(wanted));
    assert_memory_equal(text.text, wanted, text.bytes);
}

static void test_what_was_written_is_read(void **state)
{
    char *written;
    size_t bytes;
    FILE *stream = open_memstream(&written, &bytes);
    const struct told_deopt deopt = {.time_ns = UINT64_MAX,
                                     .pid = UINT32_MAX,
                                     .kind = line_text_of("deopt-lazy"),
                                     .place = line_text_of(""),
                                     .reason = line_text_of("wrong map"),
                                     .function = line_text_of("JS:*f /a.js:1:2")};
    struct told_deopt read;
    (void)state;
    deopt_text_put(stream, &deopt);
    deopt_text_put(stream, &deopt);
    fclose(stream);
    struct line_text text = {written, (uint32_t)bytes};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(deopt_text_next(&text, &read), 1);
        assert_true(read.time_ns == UINT64_MAX);
        assert_int_equal(read.pid, UINT32_MAX);
        assert_text(read.kind, "deopt-lazy");
        assert_text(read.place, "");
        assert_text(read.reason, "wrong map");
        assert_text(read.function, "JS:*f /a.js:1:2");
    }
    assert_int_equal(deopt_text_next(&text, &read), -1);
    free(written);
}

static void test_broken_lines_are_left_out(void **state)
{
    static const char *const lines[] = {
        "\n",
        "x 1\ta\tb\tc\tf\n",
        "1\n",
        "18446744073709551616 1\ta\tb\tc\tf\n",
        "1 4294967296\ta\tb\tc\tf\n",
        "1 2\ta\tb\tc\n",
        "1 2\ta\tb\tc\t\n",
        "1 2",
    };
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char *copy = malloc(strlen(lines[i])); /* without a NUL */
        struct line_text text = {copy, (uint32_t)strlen(lines[i])};
        struct told_deopt deopt;
        memcpy(copy, lines[i], text.bytes);
        assert_int_equal(deopt_text_next(&text, &deopt), 0);
        assert_int_equal(deopt_text_next(&text, &deopt), -1);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_written_is_read),
        cmocka_unit_test(test_broken_lines_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
