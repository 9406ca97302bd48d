/* Where a script's lines begin, found in its bytes, and by another way in its UTF-16 units. */
#include "injector/log/script/script_file.h"

#include "tests/unit/scratch.h"

#include <string.h>

enum { TEXTS = 20000, PIECES_MOST = 24 };

static void assert_starts(const char *text, size_t bytes, const uint32_t *starts, size_t count)
{
    struct script_lines lines;
    assert_int_equal(script_lines_take(&lines, text, bytes), 0);
    assert_int_equal(lines.count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(lines.starts[i], starts[i]);
    script_lines_free(&lines);
}

#define ASSERT_STARTS(text, ...)                                                                   \
    do {                                                                                           \
        const uint32_t starts[] = {__VA_ARGS__};                                                   \
        assert_starts(text, sizeof(text) - 1, starts, sizeof starts / sizeof *starts);             \
    } while (0)

static void test_all_that_ends_a_line(void **state)
{
    (void)state;
    ASSERT_STARTS("", 0);
    ASSERT_STARTS("a", 0);
    ASSERT_STARTS("a\nb\n", 0, 2, 4);
    ASSERT_STARTS("a\r\nb\rc\r", 0, 3, 5, 7);
    ASSERT_STARTS("\r\r\n\n\r", 0, 1, 3, 4, 5);
    ASSERT_STARTS("a\xe2\x80\xa8"
                  "b\xe2\x80\xa9"
                  "c",
                  0, 2, 4);
}

static void test_units_that_are_no_bytes(void **state)
{
    (void)state;
    ASSERT_STARTS("\xef\xbb\xbf"
                  "a\nb",
                  0, 2);
    ASSERT_STARTS("\xc3\xa4\n\xf0\x9f\x98\x80\nx", 0, 2, 5);
    ASSERT_STARTS("\xff\n\xe2\x80\n\xf0\x9f\n", 0, 2, 4, 6);
}

/* Line by line, as the units have them. */
static size_t find_in_units(const struct script_file *file, uint32_t *starts)
{
    size_t count = 0;
    starts[count++] = 0;
    for (size_t i = 0; i < file->count; i++) {
        const uint16_t unit = file->units[i];
        const bool is_last = i + 1 == file->count;
        if (unit == '\n' || unit == 0x2028 || unit == 0x2029 ||
            (unit == '\r' && (is_last || file->units[i + 1] != '\n')))
            starts[count++] = (uint32_t)i + 1;
    }
    return count;
}

static void test_bytes_and_units_tell_the_same(void **state)
{
    static const char *const pieces[] = {"a",    "abcdefgh", "\n",           "\r",
                                         "\r\n", "\xc3\xa4", "\xe2\x80\xa8", "\xf0\x9f\x98\x80",
                                         "\xff", "\xe2\x80"};
    uint32_t seed = 1, starts[PIECES_MOST * 8 + 1];
    (void)state;
    for (size_t i = 0; i < TEXTS; i++) {
        char text[PIECES_MOST * 8 + 1] = "";
        struct script_file file;
        for (size_t n = i % PIECES_MOST + 1; n; n--) {
            seed = seed * 1103515245 + 12345;
            strcat(text, pieces[(seed >> 16) % (sizeof pieces / sizeof *pieces)]);
        }
        assert_int_equal(script_file_take(&file, text, strlen(text)), 0);
        assert_starts(text, strlen(text), starts, find_in_units(&file, starts));
        script_file_free(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_that_ends_a_line),
        cmocka_unit_test(test_units_that_are_no_bytes),
        cmocka_unit_test(test_bytes_and_units_tell_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
