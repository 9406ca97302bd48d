/* What is repaired in records of source lines: addresses 0x40 too high, and names that were
 * overwritten. */
#include "injector/log/lines/line_bias.h"
#include "tests/unit/line_world.h"

/* ---- The bias ---- */

static void biased(uint32_t i, uint64_t first, uint64_t last)
{
    const struct built_row rows[] = {{ADDR + i * STEP + first, 1, 0, A},
                                     {ADDR + i * STEP + last, 2, 0, A}};
    dump_lines(&built, i, ADDR + i * STEP, rows, 2);
    load(i, ADDR + i * STEP, "f");
}

static void test_bias_shows_in_lines_behind_the_end(void **state)
{
    (void)state;
    biased(0, LINE_BIAS, LINE_BIAS + SIZE - 1);
    biased(1, LINE_BIAS + 9, LINE_BIAS + 10);
    read_log();
    assert_true(decode(0));
    assert_row(0, 0, 1, A);
    assert_row(1, SIZE - 1, 2, A);
    assert_true(decode(1));
    assert_row(0, 9, 1, A);
    assert_only_repaired(QUIRK_LINES_BIASED, 2);
    assert_int_equal(findings_lost(&fixture.findings), 0);
    release();
}

static void test_bias_shows_in_first_lines_that_are_all_at_0x40(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4; i++)
        biased(i, LINE_BIAS + (i == 3), LINE_BIAS + 8);
    read_log();
    assert_true(decode(0));
    assert_row(0, 0, 1, A);
    assert_true(decode(3));
    assert_row(0, 1, 1, A);
    assert_only_repaired(QUIRK_LINES_BIASED, 4);
    release();
}

static void test_first_line_at_0x40_is_no_bias_where_others_are_lower(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 8; i++)
        biased(i, i == 5 ? 0x3f : LINE_BIAS, SIZE - 1);
    read_log();
    assert_true(decode(0));
    assert_row(0, LINE_BIAS, 1, A);
    assert_nothing_found();
    release();
}

/* Three functions could be chance, and so could a last entry that only says where the function
 * ends. */
static void test_no_bias_without_enough_evidence(void **state)
{
    const struct built_row rows[] = {{ADDR + LINE_BIAS, 1, 0, A}, {ADDR + SIZE + 4, 0, 0, ""}};
    (void)state;
    dump_lines(&built, 0, ADDR, rows, 2);
    load(0, ADDR, "f");
    for (uint32_t i = 1; i < 3; i++)
        biased(i, LINE_BIAS, SIZE - 1);
    read_log();
    assert_true(decode(0));
    assert_row(0, LINE_BIAS, 1, A);
    assert_nothing_found();
    release();
}

static void test_one_function_in_fifty_may_differ_from_a_bias(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 100; i++)
        biased(i, i < 2 ? 0 : LINE_BIAS, i < 2 ? 8 : LINE_BIAS + SIZE - 1);
    read_log();
    assert_true(decode(50));
    assert_row(0, 0, 1, A);
    assert_int_equal(fixture.findings.repaired[QUIRK_LINES_BIASED], 100);
    release();
    dump_begin(&built, false, JITHEADER_BYTES);
    for (uint32_t i = 0; i < 100; i++)
        biased(i, i < 3 ? 0 : LINE_BIAS, i < 3 ? 8 : LINE_BIAS + SIZE - 1);
    read_log();
    assert_int_equal(fixture.findings.repaired[QUIRK_LINES_BIASED], 0);
    release();
}

/* ---- Overwritten names ---- */

static void assert_files(size_t function, const char *first, const char *second)
{
    assert_true(decode(function));
    assert_int_equal(fixture.table.row_count, 2);
    assert_row(0, 0, 11, first);
    assert_row(1, 4, 12, second);
}

static void test_overwritten_names_are_the_functions_own_or_another_ones(void **state)
{
    (void)state;
    overwritten_lines(ADDR, A, "/some/where/inlined from.js");
    load(2, ADDR, "JS:*f " A ":1:10");
    load(3, ADDR + STEP, "JS:*g /some/where/inlined from.js:7:1");
    read_log();
    assert_files(0, A, "/some/where/inlined from.js");
    assert_only_repaired(QUIRK_FILES_OVERWRITTEN, 1);
    assert_int_equal(findings_lost(&fixture.findings), 0);
    release();
}

static void test_overwritten_short_names(void **state)
{
    (void)state;
    overwritten_lines(ADDR, "/tmp/a.js", "/tmp/a.js");
    load(2, ADDR, "JS:*f /tmp/a.js:1:10");
    read_log();
    assert_files(0, "/tmp/a.js", "/tmp/a.js");
    release();
}

/* V8 pads records to 8 bytes. */
static void test_padding_behind_an_overwritten_name(void **state)
{
    static const char *const files[] = {A, "/tmp/dir/sixteen", "/tmp/a.js", "/t/a.js", "/a.js"};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        for (size_t padding = 0; padding < 8; padding++)
            for (int both = 0; both < 2; both++) {
                char name[64];
                dump_begin(&built, false, JITHEADER_BYTES);
                size_t start = built.sink.size;
                overwritten_lines(ADDR, both ? files[i] : "/some/where/inlined from.js", files[i]);
                sink_zeros(&built.sink, padding);
                dump_end_record(&built, start);
                snprintf(name, sizeof name, "JS:*f %s:1:10", files[i]);
                load(2, ADDR, name);
                load(3, ADDR + STEP, "JS:*g /some/where/inlined from.js:7:1");
                read_log();
                assert_files(0, both ? files[i] : "/some/where/inlined from.js", files[i]);
                release();
            }
}

/* What is left of it, rather than a name that may be another's. */
static void test_overwritten_names_that_nothing_or_too_much_tells(void **state)
{
    (void)state;
    overwritten_lines(ADDR, "/nobody/names/this.js", "/one/of/two/of/these.js");
    load(2, ADDR, "JS:*f " A ":1:10");
    load(3, ADDR + STEP, "JS:*g /one/of/two/of/these.js:7:1");
    load(3, ADDR + 2 * STEP, "JS:*h /all/of/two/of/these.js:7:1");
    read_log();
    assert_files(0, "is.js", "hese.js");
    release();
}

static void test_one_entry_with_an_overwritten_name(void **state)
{
    (void)state;
    dump_line(&built, 1, ADDR, 11, A);
    memcpy(built.bytes + built.sink.size - sizeof A, "abcdef\0\0qrstuvwx", 16);
    load(2, ADDR, "JS:*f " A ":1:10");
    read_log();
    assert_line(0, 11);
    assert_only_repaired(QUIRK_FILES_OVERWRITTEN, 1);
    release();
}

static void test_padding_behind_the_entries_is_no_overwritten_name(void **state)
{
    (void)state;
    size_t start = built.sink.size;
    dump_line(&built, 1, ADDR, 11, A);
    sink_zeros(&built.sink, 13);
    dump_end_record(&built, start);
    load(2, ADDR, "JS:*f " A ":1:10");
    read_log();
    assert_line(0, 11);
    assert_nothing_found();
    release();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LINE_TEST(test_bias_shows_in_lines_behind_the_end),
        LINE_TEST(test_bias_shows_in_first_lines_that_are_all_at_0x40),
        LINE_TEST(test_first_line_at_0x40_is_no_bias_where_others_are_lower),
        LINE_TEST(test_no_bias_without_enough_evidence),
        LINE_TEST(test_one_function_in_fifty_may_differ_from_a_bias),
        LINE_TEST(test_overwritten_names_are_the_functions_own_or_another_ones),
        LINE_TEST(test_overwritten_short_names),
        LINE_TEST(test_padding_behind_an_overwritten_name),
        LINE_TEST(test_overwritten_names_that_nothing_or_too_much_tells),
        LINE_TEST(test_one_entry_with_an_overwritten_name),
        LINE_TEST(test_padding_behind_the_entries_is_no_overwritten_name),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
