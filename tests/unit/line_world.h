/* A dump with records of lines that a test builds, and what is made of it. */
#ifndef PERFJIT_TEST_LINE_WORLD_H
#define PERFJIT_TEST_LINE_WORLD_H

#include "injector/log/code/log_reader.h"
#include "injector/log/lines/code_lines.h"
#include "tests/unit/line_builder.h"

enum { ADDR = 0x10000, SIZE = 0x60, STEP = 0x100, FAR = 0x7654321 };

#define A "/the/source/of/all/a.js"
#define B "/the/source/of/all/b.js"

static struct dump_builder built;
static const struct jit_clock monotonic = {0};

static struct {
    struct jit_dump dump;
    struct code_log log;
    struct findings findings;
    struct line_table table;
} fixture;

static inline void read_log(void)
{
    memset(&fixture, 0, sizeof fixture);
    open_built_dump(&built, &fixture.dump);
    assert_int_equal(
        code_log_read(&fixture.log, &fixture.dump, 0, &monotonic, true, &fixture.findings), 0);
}

static inline void release(void)
{
    line_table_free(&fixture.table);
    code_log_free(&fixture.log);
    jit_dump_close(&fixture.dump);
    findings_free(&fixture.findings);
}

static inline int begin(void **state)
{
    (void)state;
    dump_begin(&built, false, JITHEADER_BYTES);
    return 0;
}

/* SIZE bytes of code. */
static inline void load(uint64_t time, uint64_t addr, const char *name)
{
    static const char code[SIZE + 1] = "..........................................................."
                                       ".....................................";
    assert_int_equal(strlen(code), SIZE);
    dump_load(&built, time, addr, name, code, time);
}

/* Decode what is known of function INDEX.  Returns whether anything is. */
static inline bool decode(size_t index)
{
    const struct jit_function *function = &fixture.log.functions[index];
    assert_true(index < fixture.log.function_count);
    if (!function->lines)
        return false;
    assert_int_equal(code_lines_decode(function->lines, function->size, &fixture.table), 0);
    return true;
}

static inline void assert_text(struct line_text text, const char *wanted)
{
    if (!wanted) {
        assert_null(text.text);
        return;
    }
    assert_int_equal(text.bytes, strlen(wanted));
    assert_memory_equal(text.text, wanted, text.bytes);
}

static inline void assert_row(size_t at, uint32_t offset, uint32_t line, const char *file)
{
    assert_true(at < fixture.table.row_count);
    assert_int_equal(fixture.table.rows[at].offset, offset);
    assert_int_equal(fixture.table.rows[at].line, line);
    assert_text(fixture.table.rows[at].file, file);
}

/* Function INDEX has one row, LINE at its start. */
static inline void assert_line(size_t index, uint32_t line)
{
    assert_true(decode(index));
    assert_int_equal(fixture.table.row_count, 1);
    assert_row(0, 0, line, A);
}

static inline void assert_only(enum finding_kind kind, uint64_t count)
{
    for (int i = 0; i < FINDING_KINDS; i++)
        if (fixture.findings.count[i] != (i == (int)kind ? count : 0))
            fail_msg("%d findings of kind %d: %s", (int)fixture.findings.count[i], i,
                     fixture.findings.first[i]);
}

static inline bool is_of_lines(int quirk)
{
    return quirk == QUIRK_LINES_BIASED || quirk == QUIRK_FILES_OVERWRITTEN ||
           quirk == QUIRK_LINES_OUTSIDE;
}

/* Nothing is lost, and of the quirks of lines only QUIRK was repaired. */
static inline void assert_only_repaired(int quirk, uint64_t count)
{
    assert_only(FINDING_KINDS, 0);
    for (int i = 0; i < QUIRKS; i++)
        if (is_of_lines(i))
            assert_int_equal(fixture.findings.repaired[i], i == quirk ? count : 0);
}

static inline void assert_nothing_found(void)
{
    assert_only_repaired(QUIRKS, 0);
}

/* Two rows at the start of the function at ADDR, of files whose names are overwritten as V8's are.
 */
static inline void overwritten_lines(uint64_t addr, const char *first, const char *second)
{
    static const char free_memory[] = "\x6a\x67\x01\0\0\0\0\0\xf6\x0e\x54\x96\x8f\x41\x65\x2d";
    const struct built_row rows[] = {{addr, 11, 1, first}, {addr + 4, 12, 2, second}};
    dump_lines(&built, 1, addr, rows, 2);
    uint8_t *name = built.bytes + built.sink.size - strlen(second) - 1;
    memcpy(name, free_memory, strlen(second) < 16 ? strlen(second) : 16);
    name -= strlen(first) + 1 + 16;
    memcpy(name, free_memory, strlen(first) < 16 ? strlen(first) : 16);
}

#define LINE_TEST(test) cmocka_unit_test_setup(test, begin)

#endif
