/* Interpreted functions in libjitdump: what is written of them is read. */
#include "injector/log/code/log_reader.h"
#include "jitdump/interpreted.h"

#include "tests/unit/jitdump_test.h"

enum { FP = 6, CODE = 0x20000, CODE_BYTES = 0x1000, F = 0x500000, F_AT = 0x600000, F_BYTES = 20 };

static struct findings findings = {.quiet = true};

static const struct jitdump_position F_ROWS[] = {{0, 7}, {3, 8}, {200, 9}};

static struct jitdump_interpreted function_f(void)
{
    return (struct jitdump_interpreted){.function = F,
                                        .function_bytes = 88,
                                        .position = F_AT,
                                        .position_bytes = F_BYTES,
                                        .name = "f [interpreted]",
                                        .file = "a.lang",
                                        .rows = F_ROWS,
                                        .row_count = 2};
}

static const struct jitdump_interpreter INTERPRETER = {.code_addr = CODE,
                                                       .code_size = CODE_BYTES,
                                                       .frame_register = FP,
                                                       .function_offset = -24,
                                                       .position_offset = -64,
                                                       .position_register = 13};

/* The log of DUMP, which is closed. */
static void read_log(struct jitdump *dump, struct jit_dump *opened, struct code_log *log)
{
    static const struct jit_clock same;
    char cause[256];
    assert_int_equal(jitdump_close(dump), 0);
    assert_int_equal(jit_dump_open(opened, path, cause, sizeof cause), 0);
    *log = (struct code_log){0};
    assert_int_equal(code_log_read(log, opened, 0, &same, true, &findings), 0);
    interpreted_code_sort(&log->interpreted);
}

static void test_what_is_written_is_read(void **state)
{
    (void)state;
    const struct jitdump_interpreted f = function_f();
    struct jitdump *dump = open_dump();
    struct jit_dump opened;
    struct code_log log;
    assert_int_equal(jd_add_interpreter(dump, &INTERPRETER), 0);
    assert_int_equal(jd_add_interpreted(dump, &f), 0);
    read_log(dump, &opened, &log);
    const struct jit_interpreter *interpreter =
        interpreted_code_interpreter(&log.interpreted, CODE + CODE_BYTES - 1);
    assert_non_null(interpreter);
    assert_null(interpreted_code_interpreter(&log.interpreted, CODE + CODE_BYTES));
    assert_null(interpreted_code_interpreter(&log.interpreted, CODE - 1));
    assert_int_equal(interpreter->frame_register, FP);
    assert_int_equal(interpreter->function_offset, -24);
    assert_int_equal(interpreter->position_offset, -64);
    assert_int_equal(interpreter->position_register, 13);
    const struct interpreted_function *found = interpreted_code_find(&log.interpreted, F, 1);
    assert_non_null(found);
    assert_string_equal(found->record.name, "f [interpreted]");
    assert_string_equal(found->record.file, "a.lang");
    assert_int_equal(found->record.position, F_AT);
    assert_int_equal(found->record.position_bytes, F_BYTES);
    assert_int_equal(found->record.function_bytes, 88);
    assert_int_equal(findings_lost(&findings), 0);
    code_log_free(&log);
    jit_dump_close(&opened);
}

static void assert_row(const struct line_table *table, size_t row, uint32_t offset, uint32_t line)
{
    assert_int_equal(table->rows[row].offset, offset);
    assert_int_equal(table->rows[row].line, line);
}

static void test_lines_are_those_of_positions(void **state)
{
    (void)state;
    struct jitdump_interpreted f = function_f();
    struct jitdump *dump = open_dump();
    struct jit_dump opened;
    struct code_log log;
    const struct code_lines *lines;
    struct line_table table = {0};
    f.row_count = 3; /* the last one is behind the function, and left out */
    assert_int_equal(jd_add_interpreted(dump, &f), 0);
    read_log(dump, &opened, &log);
    const struct interpreted_function *found = interpreted_code_find(&log.interpreted, F, 1);
    assert_non_null(found);
    assert_int_equal(found->record.nr_line, 2);
    assert_int_equal(interpreted_code_lines(&log.interpreted, found, &lines), 0);
    assert_int_equal(code_lines_decode(lines, interpreted_room_bytes(found), &table), 0);
    assert_int_equal(table.row_count, 3);
    assert_row(&table, 0, 0, 7);
    assert_row(&table, 1, 3, 8);
    assert_row(&table, 2, F_BYTES + 1, 0); /* where no position is known */
    assert_string_equal(table.rows[1].file.text, "a.lang");
    line_table_free(&table);
    code_log_free(&log);
    jit_dump_close(&opened);
}

static void test_a_disabled_dump_takes_all(void **state)
{
    (void)state;
    const struct jitdump_interpreted f = function_f();
    assert_int_equal(jd_add_interpreter(NULL, &INTERPRETER), 0);
    assert_int_equal(jd_add_interpreted(NULL, &f), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_written_is_read),
        TEST(test_lines_are_those_of_positions),
        TEST(test_a_disabled_dump_takes_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
