/* Which function a record of source lines belongs to, and what it says. */
#include "tests/unit/line_world.h"

/* ---- Which load ---- */

static void test_lines_in_front_of_their_load(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        dump_line(&built, 2 * i, ADDR + i * STEP, 10 + i, A);
        load(2 * i + 1, ADDR + i * STEP, "f");
    }
    read_log();
    for (uint32_t i = 0; i < 3; i++)
        assert_line(i, 10 + i);
    assert_nothing_found();
    release();
}

static void test_all_lines_in_front_of_all_loads(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        dump_line(&built, i, ADDR + (2 - i) * STEP, 10 + (2 - i), A);
    for (uint32_t i = 0; i < 3; i++)
        load(5 + i, ADDR + i * STEP, "f");
    read_log();
    for (uint32_t i = 0; i < 3; i++)
        assert_line(i, 10 + i);
    assert_nothing_found();
    release();
}

static void test_lines_behind_their_load(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        load(2 * i, ADDR + i * STEP, "f");
        dump_line(&built, 2 * i + 1, ADDR + i * STEP, 10 + i, A);
    }
    read_log();
    for (uint32_t i = 0; i < 3; i++)
        assert_line(i, 10 + i);
    assert_nothing_found();
    release();
}

/* The same address again: the next load of it... */
static void test_reuse_takes_the_next_load(void **state)
{
    (void)state;
    dump_line(&built, 0, ADDR + STEP, 5, A);
    load(0, ADDR + STEP, "other");
    for (uint32_t i = 0; i < 3; i++) {
        dump_line(&built, 2 * i + 1, ADDR, 10 + i, A);
        load(2 * i + 2, ADDR, "f");
    }
    load(9, ADDR, "without lines");
    read_log();
    assert_line(0, 5);
    for (uint32_t i = 0; i < 3; i++)
        assert_line(1 + i, 10 + i);
    assert_false(decode(4));
    assert_nothing_found();
    release();
}

/* ... or the last one, in a dump of which the other records show that it has the loads first. */
static void test_reuse_takes_the_load_before_where_loads_stand_first(void **state)
{
    (void)state;
    load(0, ADDR + STEP, "other");
    dump_line(&built, 0, ADDR + STEP, 5, A);
    load(0, ADDR, "without lines");
    for (uint32_t i = 0; i < 3; i++) {
        load(2 * i + 1, ADDR, "f");
        dump_line(&built, 2 * i + 2, ADDR, 10 + i, A);
    }
    read_log();
    assert_line(0, 5);
    assert_false(decode(1));
    for (uint32_t i = 0; i < 3; i++)
        assert_line(2 + i, 10 + i);
    assert_nothing_found();
    release();
}

static void test_wrong_code_addr_goes_to_the_next_load_if_the_lines_lie_there(void **state)
{
    const struct built_row row = {ADDR, 7, 0, A}, elsewhere = {ADDR + 0x9000, 8, 0, A};
    (void)state;
    dump_lines(&built, 1, 0, &row, 1);
    load(2, ADDR, "f");
    dump_lines(&built, 3, 0, &elsewhere, 1);
    load(4, ADDR + STEP, "g");
    dump_lines(&built, 5, 0, &row, 1);
    read_log();
    assert_line(0, 7);
    assert_false(decode(1));
    assert_only(FINDING_LINES_UNMATCHED, 2);
    release();
}

static void test_of_two_records_the_second_counts(void **state)
{
    (void)state;
    dump_line(&built, 1, ADDR, 7, A);
    dump_line(&built, 2, ADDR, 8, A);
    load(3, ADDR, "f");
    read_log();
    assert_line(0, 8);
    assert_only(FINDING_LINES_UNMATCHED, 1);
    release();
}

static void test_no_lines_are_kept_if_none_are_wanted(void **state)
{
    (void)state;
    dump_line(&built, 1, ADDR, 7, A);
    load(3, ADDR, "f");
    memset(&fixture, 0, sizeof fixture);
    open_built_dump(&built, &fixture.dump);
    assert_int_equal(
        code_log_read(&fixture.log, &fixture.dump, 0, &monotonic, false, &fixture.findings), 0);
    assert_false(decode(0));
    release();
}

/* ---- Rows ---- */

static void test_rows_come_in_order_and_the_last_at_an_address_counts(void **state)
{
    static const struct built_row rows[] = {{ADDR + 8, 3, 1, A}, {ADDR, 1, 1, A},
                                            {ADDR + 8, 4, 2, B}, {ADDR + 4, 2, 1, B},
                                            {ADDR + 4, 9, 9, A}, {ADDR + SIZE - 1, 5, 1, A}};
    (void)state;
    dump_lines(&built, 1, ADDR, rows, sizeof rows / sizeof rows[0]);
    load(2, ADDR, "f");
    read_log();
    assert_true(decode(0));
    assert_int_equal(fixture.table.row_count, 4);
    assert_row(0, 0, 1, A);
    assert_row(1, 4, 9, A);
    assert_row(2, 8, 4, B);
    assert_int_equal(fixture.table.rows[2].column, 2);
    assert_row(3, SIZE - 1, 5, A);
    assert_nothing_found();
    release();
}

static void test_same_file_empty_file_and_line_0(void **state)
{
    static const struct built_row rows[] = {{ADDR, 1, 0, "\xff"},     {ADDR + 1, 2, 0, A},
                                            {ADDR + 2, 3, 0, "\xff"}, {ADDR + 3, 4, 0, ""},
                                            {ADDR + 4, 0, 0, B},      {ADDR + 5, 5, 0, "\xff"}};
    (void)state;
    dump_lines(&built, 1, ADDR, rows, sizeof rows / sizeof rows[0]);
    load(2, ADDR, "f");
    read_log();
    assert_true(decode(0));
    assert_row(0, 0, 0, NULL); /* the same as none */
    assert_row(1, 1, 2, A);
    assert_row(2, 2, 3, A);
    assert_row(3, 3, 0, NULL);
    assert_row(4, 4, 0, B);
    assert_row(5, 5, 5, B);
    assert_nothing_found();
    release();
}

/* QEMU and Erlang say with a last entry where the function ends. */
static void test_entries_at_the_end_say_nothing_and_lines_behind_are_counted(void **state)
{
    static const struct built_row rows[] = {{ADDR, 1, 0, A}, {ADDR + SIZE, 0, 0, ""}};
    static const struct built_row behind[] = {{ADDR + STEP, 2, 0, A},
                                              {ADDR + STEP + 0x900, 3, 0, A}};
    (void)state;
    dump_lines(&built, 1, ADDR, rows, 2);
    load(2, ADDR, "f");
    dump_lines(&built, 3, ADDR + STEP, behind, 2);
    load(4, ADDR + STEP, "g");
    read_log();
    assert_line(0, 1);
    assert_line(1, 2);
    assert_only(FINDING_LINES_OUTSIDE, 1);
    assert_int_equal(fixture.findings.repaired[QUIRK_LINES_OUTSIDE], 0);
    release();
}

/* Function NUMBER, at a STEP of its own, with the entries ROWS, which are those of a function at
 * ADDR. */
static void add_function(uint32_t number, const struct built_row *rows, uint32_t count)
{
    uint64_t addr = ADDR + number * STEP;
    struct built_row at[4];
    for (uint32_t i = 0; i < count; i++) {
        at[i] = rows[i];
        at[i].addr += number * STEP;
    }
    dump_lines(&built, 2 * number, addr, at, count);
    load(2 * number + 1, addr, "f");
}

static void test_of_lines_in_front_the_last_is_the_start_s(void **state)
{
    static const struct built_row of_start[] = {
        {ADDR - 5, 3, 0, A}, {ADDR - 0x32, 2, 0, A}, {ADDR + 8, 4, 0, B}};
    static const struct built_row own[] = {{ADDR - 5, 3, 0, A}, {ADDR, 6, 0, A}};
    static const struct built_row closed[] = {{ADDR - 5, 7, 0, A}, {ADDR + SIZE, 0, 0, ""}};
    static const struct built_row nowhere[] = {
        {ADDR - 9, 3, 0, A}, {ADDR - 5, 0, 0, ""}, {ADDR + 8, 4, 0, A}};
    (void)state;
    add_function(0, of_start, 3);
    add_function(1, own, 2);
    add_function(2, closed, 2);
    add_function(3, nowhere, 3);
    read_log();
    assert_true(decode(0));
    assert_int_equal(fixture.table.row_count, 2);
    assert_row(0, 0, 3, A);
    assert_row(1, 8, 4, B);
    assert_line(1, 6);
    assert_line(2, 7);
    assert_true(decode(3));
    assert_int_equal(fixture.table.row_count, 2);
    assert_row(0, 0, 0, NULL);
    assert_row(1, 8, 4, A);
    assert_only_repaired(QUIRK_LINES_OUTSIDE, 4);
    release();
}

static void test_lines_of_which_none_reaches_the_function_are_lost(void **state)
{
    static const struct built_row in_front[] = {{ADDR - 9, 3, 0, A}, {ADDR - 5, 4, 0, A}};
    static const struct built_row ends_there[] = {{ADDR - 9, 3, 0, A}, {ADDR, 0, 0, ""}};
    static const struct built_row behind[] = {{ADDR, 0, 0, ""}, {ADDR + SIZE + 1, 4, 0, A}};
    (void)state;
    add_function(0, in_front, 2);
    add_function(1, ends_there, 2);
    add_function(2, behind, 2);
    read_log();
    for (size_t i = 0; i < 3; i++) {
        assert_true(decode(i));
        assert_true(fixture.table.row_count == 0 || fixture.table.rows[0].line == 0);
    }
    assert_only(FINDING_LINES_OUTSIDE, 3);
    assert_int_equal(fixture.findings.repaired[QUIRK_LINES_OUTSIDE], 0);
    release();
}

/* A producer that gives each function the lines of a whole module has no function that lost any. */
static void test_lines_behind_most_functions_are_a_habit(void **state)
{
    static const struct built_row rows[] = {{ADDR, 2, 0, A}, {ADDR + SIZE + 9, 3, 0, A}};
    (void)state;
    for (uint32_t i = 0; i < 4; i++)
        add_function(i, rows, i == 3 ? 1 : 2);
    read_log();
    assert_only(FINDING_LINES_OUTSIDE, 3);
    release();
    add_function(4, rows, 2);
    read_log();
    for (size_t i = 0; i < 5; i++)
        assert_line(i, 2);
    assert_only_repaired(QUIRK_LINES_OUTSIDE, 4);
    release();
}

static void test_big_endian_dump(void **state)
{
    static const struct built_row rows[] = {{ADDR, 1, 7, A}, {ADDR + 0x10, 70000, 300, B}};
    (void)state;
    dump_begin(&built, true, JITHEADER_BYTES);
    dump_lines(&built, 1, ADDR, rows, 2);
    load(2, ADDR, "f");
    read_log();
    assert_true(decode(0));
    assert_row(1, 0x10, 70000, B);
    assert_int_equal(fixture.table.rows[1].column, 300);
    release();
}

/* ---- Inlined calls ---- */

static const struct built_inline tree[] = {{JIT_INLINE_NONE, "outer", A, 10, 1, B, 100},
                                           {0, "inner", B, 110, 2, NULL, 0},
                                           {JIT_INLINE_NONE, "inner", NULL, 0, 0, NULL, 0}};
static const struct built_span spans[] = {{4, 0}, {8, 1}, {12, JIT_INLINE_NONE}, {16, 2}};

static void test_inlined_calls(void **state)
{
    (void)state;
    dump_inlines(&built, 1, ADDR, tree, 3, spans, 4);
    load(2, ADDR, "f");
    read_log();
    assert_true(decode(0));
    assert_int_equal(fixture.table.row_count, 0);
    assert_int_equal(fixture.table.inline_count, 3);
    assert_int_equal(fixture.table.inlines[1].parent, 0);
    assert_int_equal(fixture.table.inlines[1].depth, 1);
    assert_int_equal(fixture.table.inlines[1].call_line, 110);
    assert_int_equal(fixture.table.inlines[1].call_column, 2);
    assert_text(fixture.table.inlines[1].call_file, B);
    assert_text(fixture.table.inlines[1].decl_file, NULL);
    assert_text(fixture.table.inlines[0].decl_file, B);
    assert_int_equal(fixture.table.inlines[0].decl_line, 100);
    assert_text(fixture.table.inlines[0].name, "outer");
    assert_text(fixture.table.inlines[2].call_file, NULL);
    assert_int_equal(fixture.table.span_count, 4);
    assert_int_equal(fixture.table.spans[2].inline_index, LINE_NOT_INLINED);
    assert_int_equal(fixture.table.spans[3].offset, 16);
    assert_nothing_found();
    release();
}

static void test_calls_behind_the_end_lose_the_calls_and_not_the_lines(void **state)
{
    const struct built_span behind[] = {{4, 0}, {SIZE, 1}};
    (void)state;
    dump_inlines(&built, 1, ADDR, tree, 3, behind, 2);
    dump_line(&built, 1, ADDR, 7, A);
    load(2, ADDR, "f");
    read_log();
    assert_line(0, 7);
    assert_int_equal(fixture.table.inline_count, 0);
    assert_only(FINDING_INLINES_BROKEN, 1);
    assert_int_equal(findings_lost(&fixture.findings), 1);
    release();
}

static void test_a_cyclic_tree_loses_the_calls_and_not_the_lines(void **state)
{
    const struct built_inline cyclic[] = {{0, "f", A, 1, 1, A, 1}};
    (void)state;
    dump_inlines(&built, 1, ADDR, cyclic, 1, spans, 1);
    dump_line(&built, 1, ADDR, 7, A);
    load(2, ADDR, "f");
    read_log();
    assert_line(0, 7);
    assert_only(FINDING_RECORD_BROKEN, 1);
    release();
}

static void test_calls_too_deep_lose_the_calls(void **state)
{
    static struct built_inline deep[LINE_MAX_DEPTH + 1];
    const struct built_span span = {0, LINE_MAX_DEPTH - 1};
    (void)state;
    for (uint32_t i = 0; i <= LINE_MAX_DEPTH; i++)
        deep[i] = (struct built_inline){i - 1, "f", A, 1, 1, A, 1};
    for (size_t more = 0; more < 2; more++) {
        dump_begin(&built, false, JITHEADER_BYTES);
        dump_inlines(&built, 1, ADDR, deep, LINE_MAX_DEPTH + more, &span, 1);
        load(2, ADDR, "f");
        read_log();
        assert_int_equal(decode(0), more == 0);
        assert_only(FINDING_INLINES_BROKEN, more);
        release();
    }
}

/* ---- Broken records ---- */

static void test_name_without_end_loses_the_lines_of_that_function_only(void **state)
{
    (void)state;
    dump_line(&built, 1, ADDR, 7, A);
    built.sink.size--;
    dump_end_record(&built, JITHEADER_BYTES);
    load(2, ADDR, "f");
    dump_line(&built, 3, ADDR + STEP, 8, A);
    load(4, ADDR + STEP, "g");
    read_log();
    assert_false(decode(0));
    assert_line(1, 8);
    assert_only(FINDING_LINES_BROKEN, 1);
    assert_int_equal(findings_lost(&fixture.findings), 1);
    release();
}

/* Whatever the bytes of the records are, nothing is read outside of them (ASan looks), and the
 * other function keeps its lines. */
static void test_no_byte_of_a_record_matters_to_others(void **state)
{
    static const uint8_t values[] = {0, 1, 0x7f, 0xff};
    (void)state;
    dump_line(&built, 1, FAR, 8, A);
    load(1, FAR, "g");
    size_t start = built.sink.size;
    dump_inlines(&built, 1, ADDR, tree, 3, spans, 4);
    overwritten_lines(ADDR, A, B);
    size_t end = built.sink.size;
    load(2, ADDR, "f");
    for (size_t at = start; at < end; at++)
        for (size_t i = 0; i < sizeof values; i++) {
            uint8_t was = built.bytes[at];
            built.bytes[at] = values[i];
            read_log();
            assert_line(0, 8);
            if (fixture.log.function_count > 1)
                decode(1);
            release();
            built.bytes[at] = was;
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LINE_TEST(test_lines_in_front_of_their_load),
        LINE_TEST(test_all_lines_in_front_of_all_loads),
        LINE_TEST(test_lines_behind_their_load),
        LINE_TEST(test_reuse_takes_the_next_load),
        LINE_TEST(test_reuse_takes_the_load_before_where_loads_stand_first),
        LINE_TEST(test_wrong_code_addr_goes_to_the_next_load_if_the_lines_lie_there),
        LINE_TEST(test_of_two_records_the_second_counts),
        LINE_TEST(test_no_lines_are_kept_if_none_are_wanted),
        LINE_TEST(test_rows_come_in_order_and_the_last_at_an_address_counts),
        LINE_TEST(test_same_file_empty_file_and_line_0),
        LINE_TEST(test_entries_at_the_end_say_nothing_and_lines_behind_are_counted),
        LINE_TEST(test_of_lines_in_front_the_last_is_the_start_s),
        LINE_TEST(test_lines_of_which_none_reaches_the_function_are_lost),
        LINE_TEST(test_lines_behind_most_functions_are_a_habit),
        LINE_TEST(test_big_endian_dump),
        LINE_TEST(test_inlined_calls),
        LINE_TEST(test_calls_behind_the_end_lose_the_calls_and_not_the_lines),
        LINE_TEST(test_a_cyclic_tree_loses_the_calls_and_not_the_lines),
        LINE_TEST(test_calls_too_deep_lose_the_calls),
        LINE_TEST(test_name_without_end_loses_the_lines_of_that_function_only),
        LINE_TEST(test_no_byte_of_a_record_matters_to_others),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
