/* Inlined calls in libjitdump: every byte of their record, every refusal, large trees and tables,
 * threads. */
#include "tests/unit/jitdump_test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

enum { ADDR = 0x40000 };

static const uint8_t CODE[16] = {0x90};

#define OWN JITDUMP_NOT_INLINED

static struct jitdump_code code_named(const char *name)
{
    return code_with_bytes(ADDR, CODE, sizeof CODE, name);
}

/* ---- The record ---- */

/* f calls g at a.js:3:5, and g calls h and then g again; the rows stand in no order, two of them
 * twice. */
static const struct jitdump_inline CALLS[] = {
    {"g", "a.js", "b.js", 3, 5, 10, JITDUMP_NOT_INLINED},
    {"h", "b.js", NULL, 11, 0, 0, 0},
    {"g", "", "b.js", 0, 0, 10, 0},
};
static const struct jitdump_line ROWS[] = {
    {ADDR + 12, "a.js", 4, 1}, {ADDR, "a.js", 2, 1},       {ADDR + 2, "a.js", 3, 1},
    {ADDR + 2, "b.js", 10, 1}, {ADDR + 4, "b.js", 11, 1},  {ADDR + 5, "b.js", 12, 1},
    {ADDR + 5, "h.js", 1, 1},  {ADDR + 9, "b.js", 10, 2},  {ADDR + 7, "h.js", 2, 1},
    {ADDR + 16, NULL, 0, 0},   {ADDR + 11, "b.js", 10, 1}, {ADDR + 13, "a.js", 5, 1},
};
static const uint32_t ROW_CALLS[] = {OWN, OWN, OWN, 0, 0, 2, 1, 2, 1, 0, 0, OWN};

static struct jitdump_code inlining_code(void)
{
    struct jitdump_code code = code_named("f");
    code.lines = ROWS;
    code.line_count = sizeof ROWS / sizeof ROWS[0];
    code.line_inlines = ROW_CALLS;
    code.inlines = CALLS;
    code.inline_count = sizeof CALLS / sizeof CALLS[0];
    return code;
}

/* What libjitdump writes for CODE, to be freed. */
static struct dump_bytes dump_of(const struct jitdump_code *code)
{
    struct jitdump *dump = open_dump();
    assert_int_equal(jitdump_add_code(dump, code, NULL), 0);
    assert_int_equal(jitdump_close(dump), 0);
    return read_dump(path);
}

/* The next numbers of BODY are the COUNT ones of EXPECTED. */
static void expect_u32s(struct byte_cursor *body, const uint32_t *expected, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t value = cursor_u32(body);
        if (value != expected[i])
            fail_msg("number %zu is 0x%x and not 0x%x", i, value, expected[i]);
    }
    assert_false(body->failed);
}

static void expect_inline_info(struct record *record)
{
    static const char strings[] = "a.js\0b.js\0g\0h"; /* each once */
    static const uint32_t words[] = {
        3,   5,   sizeof strings,
        0, /* counts and pad1 */
        OWN, 0,   3,
        5,   10,  5,
        10, /* g */
        0,   5,   11,
        0,   12,  OWN,
        0, /* h in g */
        0,   OWN, 0,
        0,   10,  5,
        10, /* g in g: where, is not known */
        2,   0,   5,
        1,   9,   2,
        11,  0,   12,
        OWN, /* spans */
    };
    assert_int_equal(record->id, JIT_CODE_INLINE_INFO);
    assert_int_equal(record->id, 0x504a0003);
    assert_int_equal(record->total_size, 40 + 3 * 28 + 5 * 8 + sizeof strings);
    assert_int_equal(cursor_u64(&record->body), ADDR);
    expect_u32s(&record->body, words, sizeof words / sizeof words[0]);
    assert_memory_equal(cursor_bytes(&record->body, sizeof strings), strings, sizeof strings);
    assert_int_equal(cursor_left(&record->body), 0);
}

/* The lines stay as they were given: the record of the specification has them all. */
static void expect_debug_info(struct record *record, const struct jitdump_code *code)
{
    assert_int_equal(record->id, JIT_CODE_DEBUG_INFO);
    assert_int_equal(cursor_u64(&record->body), ADDR);
    assert_int_equal(cursor_u64(&record->body), code->line_count);
    for (size_t i = 0; i < code->line_count; i++) {
        const struct jitdump_line *row = &code->lines[i];
        assert_int_equal(cursor_u64(&record->body), row->addr);
        assert_int_equal(cursor_u32(&record->body), row->line);
        assert_int_equal(cursor_u32(&record->body), row->column);
        assert_string_equal(cursor_cstr(&record->body), row->file ? row->file : "");
    }
}

/* Unwind tables, inlined calls, lines, load: this order, and one time. */
static void test_every_byte_of_a_group(void **state)
{
    static const uint8_t tables[8];
    const struct jitdump_unwind unwind = {tables, sizeof tables, 0, sizeof tables};
    struct jitdump_code code = inlining_code();
    struct record unwinding = {0}, inlining = {0}, lines = {0}, load = {0};
    size_t offset = JITHEADER_BYTES;
    (void)state;
    code.unwind = &unwind;
    struct dump_bytes bytes = dump_of(&code);
    assert_true(next_record(&bytes, &offset, &unwinding));
    assert_true(next_record(&bytes, &offset, &inlining));
    assert_true(next_record(&bytes, &offset, &lines));
    assert_true(next_record(&bytes, &offset, &load));
    assert_int_equal(unwinding.id, JIT_CODE_UNWINDING_INFO);
    expect_inline_info(&inlining);
    expect_debug_info(&lines, &code);
    assert_int_equal(load.id, JIT_CODE_LOAD);
    assert_int_equal(load.total_size, 56 + 2 + sizeof CODE);
    assert_true(inlining.timestamp == unwinding.timestamp && inlining.timestamp == load.timestamp);
    free(bytes.data);
}

/* The first group of a killed process's dump begins with this record, if it has no tables: it is
 * published like any other. */
static void test_first_record_of_a_group(void **state)
{
    struct jitdump_code code = inlining_code();
    struct record inlining = {0};
    size_t offset = JITHEADER_BYTES;
    (void)state;
    struct dump_bytes bytes = dump_of(&code);
    assert_true(next_record(&bytes, &offset, &inlining));
    expect_inline_info(&inlining);
    free(bytes.data);
}

static void test_ascending_rows_make_the_same_record(void **state)
{
    static const size_t order[] = {1, 2, 3, 4, 5, 6, 8, 7, 10, 0, 11, 9};
    struct jitdump_line rows[sizeof order / sizeof order[0]];
    uint32_t row_calls[sizeof order / sizeof order[0]];
    struct jitdump_code code = inlining_code();
    struct record inlining = {0};
    size_t offset = JITHEADER_BYTES;
    (void)state;
    for (size_t i = 0; i < code.line_count; i++) {
        rows[i] = ROWS[order[i]];
        row_calls[i] = ROW_CALLS[order[i]];
    }
    code.lines = rows;
    code.line_inlines = row_calls;
    struct dump_bytes bytes = dump_of(&code);
    assert_true(next_record(&bytes, &offset, &inlining));
    expect_inline_info(&inlining);
    free(bytes.data);
}

static void test_inlines_without_rows(void **state)
{
    struct jitdump_code code = inlining_code();
    struct record inlining = {0}, load = {0};
    size_t offset = JITHEADER_BYTES;
    (void)state;
    code.line_count = 0;
    code.lines = NULL;
    code.line_inlines = NULL;
    struct dump_bytes bytes = dump_of(&code);
    assert_true(next_record(&bytes, &offset, &inlining));
    assert_int_equal(inlining.id, JIT_CODE_INLINE_INFO);
    assert_int_equal(inlining.total_size, 40 + 3 * 28 + 14);
    assert_true(next_record(&bytes, &offset, &load));
    assert_int_equal(load.id, JIT_CODE_LOAD);
    free(bytes.data);
}

/* ---- None ---- */

static void expect_no_inline_info(struct jitdump_code *code)
{
    struct dump_bytes bytes = dump_of(code);
    free(bytes.data);
    assert_int_equal(count_records(path, JIT_CODE_INLINE_INFO), 0);
    assert_int_equal(count_records(path, JIT_CODE_DEBUG_INFO), 1);
    assert_int_equal(count_records(path, JIT_CODE_LOAD), 1);
}

static void test_without_inlines_there_is_no_record(void **state)
{
    uint32_t none[sizeof ROWS / sizeof ROWS[0]];
    struct jitdump_code code = inlining_code();
    (void)state;
    code.inline_count = 0;
    code.line_inlines = NULL;
    expect_no_inline_info(&code);
    memset(none, 0xff, sizeof none);
    code.line_inlines = none;
    expect_no_inline_info(&code);
    code.code_addr += 0x1000; /* nobody asks where the rows are */
    expect_no_inline_info(&code);
}

/* A caller that was built when the struct ended with unwind. */
static void test_shorter_struct_has_no_inlines(void **state)
{
    struct jitdump_code code = inlining_code();
    (void)state;
    code.size = offsetof(struct jitdump_code, inlines);
    expect_no_inline_info(&code);
    code.inlines = (const struct jitdump_inline *)8; /* his memory behind it is not looked at */
    expect_no_inline_info(&code);
}

/* ---- Refusals ---- */

/* Adding CODE fails for the reason that WORDS name, and nothing of it gets into the dump. */
static void expect_refusal(const struct jitdump_code *code, int error, const char *words)
{
    struct jitdump *dump = open_dump();
    uint64_t code_index = 7;
    assert_int_equal(jitdump_add_code(dump, code, &code_index), error);
    if (!strstr(jitdump_error(dump), words))
        fail_msg("'%s' does not say '%s'", jitdump_error(dump), words);
    assert_int_equal(jitdump_lost(dump), 1);
    assert_true(code_index == JITDUMP_NO_CODE);
    assert_int_equal(jitdump_close(dump), error);
    struct dump_bytes bytes = read_dump(path);
    assert_int_equal(bytes.size, JITHEADER_BYTES + JR_CODE_CLOSE_BYTES);
    free(bytes.data);
}

static void test_missing_pointers(void **state)
{
    struct jitdump_code code = inlining_code();
    (void)state;
    code.inlines = NULL;
    expect_refusal(&code, -EINVAL, "inlines is NULL");
    code = inlining_code();
    code.line_inlines = NULL;
    expect_refusal(&code, -EINVAL, "line_inlines is NULL");
}

static void test_bad_trees(void **state)
{
    struct jitdump_inline calls[3];
    struct jitdump_code code = inlining_code();
    (void)state;
    code.inlines = calls;
    memcpy(calls, CALLS, sizeof calls);
    calls[1].name = NULL;
    expect_refusal(&code, -EINVAL, "jitdump_inline 1: name is NULL");
    memcpy(calls, CALLS, sizeof calls);
    calls[2].parent = 2; /* itself */
    expect_refusal(&code, -EINVAL, "jitdump_inline 2: parent is 2");
    calls[2].parent = 3; /* one that does not exist */
    expect_refusal(&code, -EINVAL, "jitdump_inline 2: parent is 3");
    calls[2].parent = 0;
    calls[0].parent = 1; /* a later one */
    expect_refusal(&code, -EINVAL, "jitdump_inline 0: parent is 1");
}

static void test_bad_rows(void **state)
{
    static const uint64_t outside[] = {ADDR - 1, ADDR + sizeof CODE + 1, 0, UINT64_MAX};
    struct jitdump_line rows[sizeof ROWS / sizeof ROWS[0]];
    uint32_t row_calls[sizeof ROWS / sizeof ROWS[0]];
    struct jitdump_code code = inlining_code();
    (void)state;
    code.lines = rows;
    code.line_inlines = row_calls;
    memcpy(rows, ROWS, sizeof rows);
    memcpy(row_calls, ROW_CALLS, sizeof row_calls);
    row_calls[4] = 3;
    expect_refusal(&code, -EINVAL, "line_inlines[4] is 3, and inline_count 3");
    row_calls[4] = UINT32_MAX - 1;
    expect_refusal(&code, -EINVAL, "line_inlines[4] is 4294967294");
    row_calls[4] = 0;
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        rows[11].addr = outside[i];
        expect_refusal(&code, -EINVAL, "jitdump_line 11: addr 0x");
    }
    code = inlining_code();
    code.inline_count = 0; /* but rows that belong to inlines */
    expect_refusal(&code, -EINVAL, "line_inlines[3] is 0, and inline_count 0");
}

static void test_too_large(void **state)
{
    struct jitdump_code code = inlining_code();
    (void)state;
    code.inline_count = SIZE_MAX;
    expect_refusal(&code, -EFBIG, "4 GiB");
    code.inline_count = UINT32_MAX / 28 + 1;
    expect_refusal(&code, -EFBIG, "4 GiB");
    code = inlining_code();
    code.line_count = SIZE_MAX;
    expect_refusal(&code, -EFBIG, "4 GiB");
    code = inlining_code();
    code.code_size = (uint64_t)UINT32_MAX + 1;
    expect_refusal(&code, -EFBIG, "4 GiB");
}

/* For AddressSanitizer: a malloc that can't be satisfied shall say so, as malloc does. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

enum { MANY_ROWS = 1000000 };

static void child_has_no_memory(struct jitdump *unused)
{
    static struct jitdump_line rows[MANY_ROWS];
    static uint32_t row_calls[MANY_ROWS];
    struct jitdump *dump = NULL;
    struct jitdump_code code = inlining_code();
    struct rlimit all, none;
    (void)unused;
    for (size_t i = 0; i < MANY_ROWS; i++)
        rows[i].addr = ADDR + (MANY_ROWS - i) % 16;
    CHECK(try_open(&dump) == 0);
    CHECK(getrlimit(RLIMIT_AS, &all) == 0);
    none = all;
    none.rlim_cur = 0;
    code.lines = rows;
    code.line_inlines = row_calls;
    code.line_count = MANY_ROWS;
    CHECK(setrlimit(RLIMIT_AS, &none) == 0);
    int result = jitdump_add_code(dump, &code, NULL);
    CHECK(setrlimit(RLIMIT_AS, &all) == 0);
    CHECK(result == -ENOMEM);
    CHECK(strstr(jitdump_error(dump), "no memory"));
    code = inlining_code();
    CHECK(jitdump_add_code(dump, &code, NULL) == 0);
    CHECK(jitdump_lost(dump) == 1);
    CHECK(jitdump_close(dump) == -ENOMEM);
    CHECK(count_records(path, JIT_CODE_LOAD) == 1);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(child_has_no_memory, NULL), 0);
}

/* ---- Codes that are not there ---- */

static void test_no_code_is_not_moved_or_unloaded(void **state)
{
    struct jitdump_code nothing = JITDUMP_CODE_INIT;
    struct jitdump *dump = open_dump();
    uint64_t code_index = 7;
    (void)state;
    nothing.size = 0;
    assert_int_equal(jitdump_add_code(dump, &nothing, &code_index), -EINVAL);
    assert_true(code_index == JITDUMP_NO_CODE);
    assert_int_equal(jitdump_move_code(dump, code_index, ADDR, ADDR + 64, 16), 0);
    assert_int_equal(jitdump_unload_code(dump, code_index, ADDR + 64, 16), 0);
    assert_int_equal(jitdump_lost(dump), 1);
    assert_int_equal(jitdump_close(dump), -EINVAL);
    struct dump_bytes bytes = read_dump(path);
    assert_int_equal(bytes.size, JITHEADER_BYTES + JR_CODE_CLOSE_BYTES);
    free(bytes.data);
}

static void test_no_code_when_off_or_not_open(void **state)
{
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    struct jitdump_code code = code_named("f");
    struct jitdump *dump;
    uint64_t code_index = 7;
    (void)state;
    assert_int_equal(jitdump_add_code(NULL, &code, &code_index), 0);
    assert_true(code_index == JITDUMP_NO_CODE);
    assert_int_equal(jitdump_add_code(NULL, &code, NULL), 0);
    options.flags = JITDUMP_ALWAYS;
    options.dir = "/nonexistent";
    assert_int_equal(jitdump_open(&dump, &options), -ENOENT);
    code_index = 7;
    assert_int_equal(jitdump_add_code(dump, &code, &code_index), -ENOENT);
    assert_true(code_index == JITDUMP_NO_CODE);
    assert_int_equal(jitdump_move_code(dump, code_index, ADDR, ADDR + 64, 16), 0);
    assert_int_equal(jitdump_unload_code(dump, code_index, ADDR + 64, 16), 0);
    assert_int_equal(jitdump_move_code(dump, 0, ADDR, ADDR + 64, 16), -ENOENT);
    assert_int_equal(jitdump_lost(dump), 2);
    assert_int_equal(jitdump_close(dump), -ENOENT);
}

/* ---- Large ones ---- */

enum { LARGE = 100000 };

/* Each call stands in the one before, and all names are new: 100 000 deep. */
static void test_deep_tree(void **state)
{
    struct jitdump_inline *calls = calloc(LARGE, sizeof *calls);
    char(*names)[8] = calloc(LARGE, sizeof *names);
    struct jitdump_code code = inlining_code();
    struct record record = {0};
    size_t offset = JITHEADER_BYTES;
    (void)state;
    for (uint32_t i = 0; i < LARGE; i++) {
        /* Backwards, so that they are not in the order of the alphabet. */
        snprintf(names[i], sizeof names[i], "%06u", LARGE - i);
        calls[i] = (struct jitdump_inline){names[i], "a.js", "a.js", i, 0, 0, i ? i - 1 : OWN};
    }
    code.inlines = calls;
    code.inline_count = LARGE;
    struct dump_bytes bytes = dump_of(&code);
    assert_true(next_record(&bytes, &offset, &record));
    assert_int_equal(record.total_size, 40 + LARGE * 28 + 5 * 8 + LARGE * 7 + 5);
    struct byte_cursor body = record.body;
    cursor_skip(&body, 8 + 16);
    const char *strings = (const char *)record.body.data + record.total_size - LARGE * 7 - 5;
    for (uint32_t i = 0; i < LARGE; i++) {
        assert_int_equal(cursor_u32(&body), i ? i - 1 : OWN);
        assert_string_equal(strings + cursor_u32(&body), "a.js");
        assert_int_equal(cursor_u32(&body), i);
        assert_int_equal(cursor_u32(&body), 0);
        assert_string_equal(strings + cursor_u32(&body), names[i]);
        cursor_skip(&body, 8);
    }
    free(bytes.data);
    free(names);
    free(calls);
}

/* 100 000 rows from back to front, each with another inline than its neighbours. */
static void test_many_rows(void **state)
{
    struct jitdump_line *rows = calloc(LARGE, sizeof *rows);
    uint32_t *row_calls = calloc(LARGE, sizeof *row_calls);
    struct jitdump_code code = inlining_code();
    struct record record = {0};
    size_t offset = JITHEADER_BYTES;
    (void)state;
    for (uint32_t i = 0; i < LARGE; i++) {
        rows[i] = (struct jitdump_line){ADDR + LARGE - 1 - i, "a.js", i, 0};
        row_calls[i] = (LARGE - 1 - i) % 3;
    }
    code.code_size = LARGE;
    code.bytes = NULL;
    code.lines = rows;
    code.line_inlines = row_calls;
    code.line_count = LARGE;
    struct dump_bytes bytes = dump_of(&code);
    assert_true(next_record(&bytes, &offset, &record));
    assert_int_equal(record.total_size, 40 + 3 * 28 + LARGE * 8 + 14);
    cursor_skip(&record.body, 24 + 3 * 28);
    for (uint32_t i = 0; i < LARGE; i++) {
        assert_int_equal(cursor_u32(&record.body), i);
        assert_int_equal(cursor_u32(&record.body), i % 3);
    }
    free(bytes.data);
    free(row_calls);
    free(rows);
}

/* ---- Threads and kills ---- */

enum { THREADS = 4, ADDS = 2000 };

static void *add_many(void *argument)
{
    struct jitdump_code code = inlining_code();
    for (int i = 0; i < ADDS; i++)
        CHECK(jitdump_add_code(argument, &code, NULL) == 0);
    return NULL;
}

/* The next group, which must be whole, in front of which fillers may stand.  Returns false at the
 * end. */
static bool next_group(const struct dump_bytes *bytes, size_t *offset)
{
    struct record inlining = {0}, lines = {0}, load = {0};
    do {
        if (!next_record(bytes, offset, &inlining) || inlining.id == JIT_CODE_CLOSE)
            return false;
    } while (inlining.id == JIT_FILLER);
    assert_true(next_record(bytes, offset, &lines));
    assert_true(next_record(bytes, offset, &load));
    expect_inline_info(&inlining);
    assert_int_equal(lines.id, JIT_CODE_DEBUG_INFO);
    assert_int_equal(load.id, JIT_CODE_LOAD);
    return true;
}

/* Every group is whole, whoever writes next to it. */
static void test_threads(void **state)
{
    pthread_t threads[THREADS];
    struct jitdump *dump = open_dump();
    size_t offset = JITHEADER_BYTES;
    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, dump), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(jitdump_lost(dump), 0);
    assert_int_equal(jitdump_close(dump), 0);
    struct dump_bytes bytes = read_dump(path);
    for (int i = 0; i < THREADS * ADDS; i++)
        assert_true(next_group(&bytes, &offset));
    assert_false(next_group(&bytes, &offset));
    assert_int_equal(offset, bytes.size);
    free(bytes.data);
}

static void child_adds_for_ever(struct jitdump *unused)
{
    struct jitdump_code code = inlining_code();
    struct jitdump *dump;
    (void)unused;
    CHECK(try_open(&dump) == 0);
    for (;;)
        CHECK(jitdump_add_code(dump, &code, NULL) == 0);
}

static off_t size_of(const char *file_path)
{
    struct stat status;
    return stat(file_path, &status) == 0 ? status.st_size : 0;
}

/* Killed at any moment, a process leaves whole groups, and fillers.  Every other one when it has
 * just got its first MiB of disk, of which nothing need be used yet; the others have used it up. */
static void test_kills(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        pid_t child = start_child(child_adds_for_ever, NULL);
        size_t offset = JITHEADER_BYTES, groups = 0;
        off_t awaited = i % 2 ? 64 << 10 : (1 << 20) + 1;
        set_path(child);
        while (size_of(path) < awaited)
            usleep(100);
        usleep((useconds_t)(i * 211));
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(wait_for(child), 128 + SIGKILL);
        struct dump_bytes bytes = read_dump(path);
        while (next_group(&bytes, &offset))
            groups++;
        free(bytes.data);
        assert_true(i % 2 || groups > 0);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_byte_of_a_group),
        TEST(test_first_record_of_a_group),
        TEST(test_ascending_rows_make_the_same_record),
        TEST(test_inlines_without_rows),
        TEST(test_without_inlines_there_is_no_record),
        TEST(test_shorter_struct_has_no_inlines),
        TEST(test_missing_pointers),
        TEST(test_bad_trees),
        TEST(test_bad_rows),
        TEST(test_too_large),
        TEST(test_out_of_memory),
        TEST(test_no_code_is_not_moved_or_unloaded),
        TEST(test_no_code_when_off_or_not_open),
        TEST(test_deep_tree),
        TEST(test_many_rows),
        TEST(test_threads),
        TEST(test_kills),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
