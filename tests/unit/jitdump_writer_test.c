/* libjitdump's writer: every byte of its records, and what its arguments may be. */
#include "tests/unit/jitdump_test.h"

#include "jitdump/writer/dump_writer.h"

#include <sys/syscall.h>
#include <time.h>

/* ---- Helpers ---- */

static const uint8_t CODE[5] = {0xb8, 1, 0, 0, 0xc3};

static struct jitdump_code code_named(const char *name)
{
    return code_with_bytes(0x7f0012345000, CODE, sizeof CODE, name);
}

static int add_named(struct jitdump *dump, const char *name)
{
    struct jitdump_code code = code_named(name);
    return jitdump_add_code(dump, &code, NULL);
}

/* Close DUMP and give what it wrote, to be freed. */
static struct dump_bytes close_and_read(struct jitdump *dump)
{
    assert_int_equal(jitdump_close(dump), 0);
    return read_dump(path);
}

static struct record expect_record(const struct dump_bytes *dump, size_t *offset, uint32_t id,
                                   uint32_t total_size)
{
    struct record record = {0};
    assert_true(next_record(dump, offset, &record));
    assert_int_equal(record.id, id);
    assert_int_equal(record.total_size, total_size);
    return record;
}

static void expect_author(struct byte_cursor *body)
{
    assert_int_equal(cursor_u32(body), getpid());
    assert_int_equal(cursor_u32(body), syscall(SYS_gettid));
}

static void expect_load(const struct dump_bytes *dump, size_t *offset, uint64_t code_index,
                        const char *name)
{
    size_t name_bytes = strlen(name) + 1;
    struct record record =
        expect_record(dump, offset, JIT_CODE_LOAD, (uint32_t)(56 + name_bytes + sizeof CODE));
    expect_author(&record.body);
    assert_int_equal(cursor_u64(&record.body), 0x7f0012345000);
    assert_int_equal(cursor_u64(&record.body), 0x7f0012345000);
    assert_int_equal(cursor_u64(&record.body), sizeof CODE);
    assert_int_equal(cursor_u64(&record.body), code_index);
    assert_string_equal(cursor_cstr(&record.body), name);
    assert_int_equal(cursor_left(&record.body), sizeof CODE);
    assert_memory_equal(cursor_bytes(&record.body, sizeof CODE), CODE, sizeof CODE);
}

/* CODE_CLOSE, and nothing behind it. */
static void expect_end(const struct dump_bytes *dump, size_t offset)
{
    expect_record(dump, &offset, JIT_CODE_CLOSE, 16);
    assert_int_equal(offset, dump->size);
}

static uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- Arguments ---- */

static void test_code_struct(void **state)
{
    struct {
        struct jitdump_code code;
        char unknown[8];
    } longer = {code_named("long"), {0}};
    struct jitdump_code code = code_named("short");
    struct jitdump *dump = open_dump();
    (void)state;
    code.size = offsetof(struct jitdump_code, lines); /* what lies behind is not looked at */
    code.lines = (const struct jitdump_line *)8;
    code.line_count = 8;
    code.unwind = (const struct jitdump_unwind *)8;
    assert_int_equal(jitdump_add_code(dump, &code, NULL), 0);
    longer.code.size = sizeof longer;
    assert_int_equal(jitdump_add_code(dump, &longer.code, NULL), 0);
    assert_int_equal(jitdump_lost(dump), 0);
    assert_string_equal(jitdump_error(dump), "");
    longer.unknown[7] = 1;
    assert_int_equal(jitdump_add_code(dump, &longer.code, NULL), -E2BIG);
    assert_non_null(strstr(jitdump_error(dump), "does not know"));
    struct {
        struct jitdump_unwind unwind;
        char unknown[8];
    } tables = {{0}, {0, 1}};
    struct jitdump_code unwound = code_named("unwound");
    unwound.unwind = &tables.unwind;
    unwound.unwind_size = sizeof tables;
    assert_int_equal(jitdump_add_code(dump, &unwound, NULL), -E2BIG);
    unwound.unwind_size = sizeof tables.unwind - 1;
    assert_int_equal(jitdump_add_code(dump, &unwound, NULL), -EINVAL);
    code.size = 0;
    assert_int_equal(jitdump_add_code(dump, &code, NULL), -EINVAL);
    code.size = offsetof(struct jitdump_code, code_size);
    assert_int_equal(jitdump_add_code(dump, &code, NULL), -EINVAL);
    assert_int_equal(jitdump_add_code(dump, NULL, NULL), -EINVAL);
    assert_int_equal(jitdump_lost(dump), 6);
    assert_int_equal(jitdump_close(dump), -E2BIG); /* the first */
    struct dump_bytes bytes = read_dump(path);
    size_t offset = JITHEADER_BYTES;
    expect_load(&bytes, &offset, 0, "short");
    expect_load(&bytes, &offset, 1, "long");
    expect_end(&bytes, offset);
    free(bytes.data);
}

static void test_missing_pointers(void **state)
{
    const struct jitdump_unwind no_data = {NULL, 8, 0, 0}, header_too_large = {CODE, 4, 5, 0};
    struct jitdump_code code = code_named("f");
    struct jitdump *dump = open_dump();
    (void)state;
    code.line_count = 1;
    assert_int_equal(jitdump_add_code(dump, &code, NULL), -EINVAL);
    assert_non_null(strstr(jitdump_error(dump), "lines is NULL"));
    code.line_count = 0;
    code.unwind = &no_data;
    assert_int_equal(jitdump_add_code(dump, &code, NULL), -EINVAL);
    code.unwind = &header_too_large;
    assert_int_equal(jitdump_add_code(dump, &code, NULL), -EINVAL);
    assert_int_equal(jitdump_lost(dump), 3);
    assert_int_equal(jitdump_close(dump), -EINVAL);
    assert_int_equal(count_records(path, JIT_CODE_LOAD), 0);
}

/* ---- Records ---- */

static void test_load(void **state)
{
    static const char *const names[] = {"fib", "two\nlines \xff\xc3\xa4", ""};
    struct jitdump *dump = open_dump();
    struct jitdump_code code;
    uint64_t code_index = 99;
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        code = code_named(names[i]);
        assert_int_equal(jitdump_add_code(dump, &code, &code_index), 0);
        assert_int_equal(code_index, i);
    }
    assert_int_equal(add_named(dump, NULL), 0);
    struct dump_bytes bytes = close_and_read(dump);
    size_t offset = JITHEADER_BYTES;
    for (size_t i = 0; i < 3; i++)
        expect_load(&bytes, &offset, i, names[i]);
    expect_load(&bytes, &offset, 3, "");
    expect_end(&bytes, offset);
    free(bytes.data);
}

static void test_timestamps(void **state)
{
    struct jitdump *dump = open_dump();
    uint64_t before = monotonic_ns();
    (void)state;
    assert_int_equal(add_named(dump, "fib"), 0);
    uint64_t after = monotonic_ns();
    struct dump_bytes bytes = close_and_read(dump);
    struct record record;
    size_t offset = JITHEADER_BYTES;
    assert_true(next_record(&bytes, &offset, &record));
    assert_in_range(record.timestamp, before, after);
    assert_true(next_record(&bytes, &offset, &record));
    assert_in_range(record.timestamp, after, monotonic_ns());
    free(bytes.data);
}

/* Bytes that can't be read take their room as zeros: perf takes the end of the record for them. */
static void test_no_code_bytes(void **state)
{
    struct jitdump *dump = open_dump();
    struct jitdump_code code = code_named("stub");
    (void)state;
    code.bytes = NULL;
    code.code_size = 100000; /* more than the stage has */
    assert_int_equal(jitdump_add_code(dump, &code, NULL), 0);
    code.code_size = 0;
    assert_int_equal(jitdump_add_code(dump, &code, NULL), 0);
    struct dump_bytes bytes = close_and_read(dump);
    size_t offset = JITHEADER_BYTES;
    struct record record = expect_record(&bytes, &offset, JIT_CODE_LOAD, 56 + 5 + 100000);
    for (size_t i = 0; i < 100000; i++)
        assert_int_equal(bytes.data[record.offset + 61 + i], 0);
    expect_record(&bytes, &offset, JIT_CODE_LOAD, 56 + 5);
    expect_end(&bytes, offset);
    free(bytes.data);
}

static void expect_entry(struct byte_cursor *body, const struct jitdump_line *line)
{
    assert_int_equal(cursor_u64(body), line->addr);
    assert_int_equal(cursor_u32(body), line->line);
    assert_int_equal(cursor_u32(body), line->column);
    assert_string_equal(cursor_cstr(body), line->file ? line->file : "");
}

static const struct jitdump_line LINES[] = {
    {0x7f0012345000, "fib.js", 10, 3},
    {0x7f0012345002, "fib.js", 11, 0},
    {0x7f0012345003, "/usr/lib/other.js", 0xfffffffe, 0xffffffff},
    {0x7f0012345004, NULL, 0, 0},
};

static void expect_debug_info(const struct dump_bytes *bytes, size_t *offset)
{
    struct record record =
        expect_record(bytes, offset, JIT_CODE_DEBUG_INFO, 32 + 4 * 16 + 7 + 7 + 18 + 1);
    assert_int_equal(cursor_u64(&record.body), 0x7f0012345000);
    assert_int_equal(cursor_u64(&record.body), 4);
    for (size_t i = 0; i < 4; i++)
        expect_entry(&record.body, &LINES[i]);
    assert_int_equal(cursor_left(&record.body), 0);
}

static void test_debug_info(void **state)
{
    struct jitdump *dump = open_dump();
    struct jitdump_code code = code_named("fib");
    (void)state;
    code.lines = LINES;
    code.line_count = 4;
    assert_int_equal(jitdump_add_code(dump, &code, NULL), 0);
    struct dump_bytes bytes = close_and_read(dump);
    size_t offset = JITHEADER_BYTES;
    expect_debug_info(&bytes, &offset);
    expect_load(&bytes, &offset, 0, "fib");
    expect_end(&bytes, offset);
    free(bytes.data);
}

/* Unwind tables, lines, load: this order, and one time. */
static void test_whole_group(void **state)
{
    static const uint8_t tables[] = "eh_frame and then eh_frame_hdr";
    const struct jitdump_unwind unwind = {tables, sizeof tables, 13, 0x123456789a};
    struct jitdump *dump = open_dump();
    struct jitdump_code code = code_named("fib");
    (void)state;
    code.lines = LINES;
    code.line_count = 4;
    code.unwind = &unwind;
    assert_int_equal(jitdump_add_code(dump, &code, NULL), 0);
    struct dump_bytes bytes = close_and_read(dump);
    size_t offset = JITHEADER_BYTES;
    struct record record =
        expect_record(&bytes, &offset, JIT_CODE_UNWINDING_INFO, 40 + sizeof tables);
    assert_int_equal(cursor_u64(&record.body), sizeof tables);
    assert_int_equal(cursor_u64(&record.body), 13);
    assert_int_equal(cursor_u64(&record.body), 0x123456789a);
    assert_memory_equal(cursor_bytes(&record.body, sizeof tables), tables, sizeof tables);
    size_t next = offset;
    for (int i = 0; i < 2; i++) {
        struct record other;
        assert_true(next_record(&bytes, &next, &other));
        assert_int_equal(other.timestamp, record.timestamp);
    }
    expect_debug_info(&bytes, &offset);
    expect_load(&bytes, &offset, 0, "fib");
    expect_end(&bytes, offset);
    free(bytes.data);
}

static void test_empty_unwind_is_none(void **state)
{
    const struct jitdump_unwind unwind = {NULL, 0, 0, 64};
    struct jitdump *dump = open_dump();
    struct jitdump_code code = code_named("fib");
    (void)state;
    code.unwind = &unwind;
    assert_int_equal(jitdump_add_code(dump, &code, NULL), 0);
    struct dump_bytes bytes = close_and_read(dump);
    size_t offset = JITHEADER_BYTES;
    expect_load(&bytes, &offset, 0, "fib");
    expect_end(&bytes, offset);
    free(bytes.data);
}

static void test_move_and_unload(void **state)
{
    struct jitdump *dump = open_dump();
    (void)state;
    assert_int_equal(jitdump_move_code(dump, 0x1122334455, 0xa000, 0xb000, 0x77), 0);
    assert_int_equal(jitdump_unload_code(dump, 0x66778899aa, 0xc000, 0x88), 0);
    assert_int_equal(add_named(dump, "fib"), 0);
    struct dump_bytes bytes = close_and_read(dump);
    size_t offset = JITHEADER_BYTES;
    struct record move = expect_record(&bytes, &offset, JIT_CODE_MOVE, 64);
    expect_author(&move.body);
    assert_int_equal(cursor_u64(&move.body), 0xb000);
    assert_int_equal(cursor_u64(&move.body), 0xa000);
    assert_int_equal(cursor_u64(&move.body), 0xb000);
    assert_int_equal(cursor_u64(&move.body), 0x77);
    assert_int_equal(cursor_u64(&move.body), 0x1122334455);
    struct record unload = expect_record(&bytes, &offset, 0x504a0001, 48);
    expect_author(&unload.body);
    assert_int_equal(cursor_u64(&unload.body), 0xc000);
    assert_int_equal(cursor_u64(&unload.body), 0x88);
    assert_int_equal(cursor_u64(&unload.body), 0x66778899aa);
    expect_load(&bytes, &offset, 0, "fib"); /* only functions take indices */
    expect_end(&bytes, offset);
    free(bytes.data);
}

/* ---- Large ones ---- */

/* 10 MB: several times what the file grows by. */
static void test_large_function(void **state)
{
    enum { LARGE_BYTES = 10 * 1000 * 1000 };
    struct jitdump *dump = open_dump();
    struct jitdump_code code = code_named("large");
    uint8_t *large = malloc(LARGE_BYTES);
    (void)state;
    assert_non_null(large);
    for (size_t i = 0; i < LARGE_BYTES; i++)
        large[i] = (uint8_t)(i * 2654435761u >> 16);
    code.bytes = large;
    code.code_size = LARGE_BYTES;
    assert_int_equal(add_named(dump, "before"), 0);
    assert_int_equal(jitdump_add_code(dump, &code, NULL), 0);
    assert_int_equal(add_named(dump, "after"), 0);
    struct dump_bytes bytes = close_and_read(dump);
    size_t offset = JITHEADER_BYTES;
    expect_load(&bytes, &offset, 0, "before");
    struct record record = expect_record(&bytes, &offset, JIT_CODE_LOAD, 56 + 6 + LARGE_BYTES);
    assert_memory_equal(bytes.data + record.offset + 62, large, LARGE_BYTES);
    expect_load(&bytes, &offset, 2, "after");
    expect_end(&bytes, offset);
    free(large);
    free(bytes.data);
}

static void test_too_large(void **state)
{
    struct jitdump_unwind unwind = {CODE, UINT64_MAX, 0, 0};
    struct jitdump *dump = open_dump();
    struct jitdump_code code = code_named("fib");
    (void)state;
    code.code_size = UINT64_MAX;
    assert_int_equal(jitdump_add_code(dump, &code, NULL), -EFBIG);
    assert_non_null(strstr(jitdump_error(dump), "4 GiB"));
    assert_non_null(strstr(jitdump_error(dump), path));
    code.code_size = UINT32_MAX - 56 - 3; /* one byte too many */
    assert_int_equal(jitdump_add_code(dump, &code, NULL), -EFBIG);
    code = code_named("fib");
    code.unwind = &unwind;
    assert_int_equal(jitdump_add_code(dump, &code, NULL), -EFBIG);
    code = code_named("fib");
    code.lines = LINES;
    code.line_count = SIZE_MAX;
    assert_int_equal(jitdump_add_code(dump, &code, NULL), -EFBIG);
    assert_int_equal(jitdump_lost(dump), 4);
    assert_int_equal(add_named(dump, "fib"), 0);
    assert_int_equal(jitdump_close(dump), -EFBIG);
    assert_int_equal(count_records(path, JIT_CODE_LOAD), 1);
}

/* A name that changes between measuring and copying, seen from the inside: the group leaves no
 * trace. */
static void test_unfinished_group_is_not_there(void **state)
{
    static const uint8_t header[JITHEADER_BYTES];
    struct held_fd stage;
    char file_path[128], stage_path[128];
    struct first_error error;
    struct dump_writer writer;
    struct dump_room room;
    struct held_fd fd;
    (void)state;
    snprintf(file_path, sizeof file_path, "%s/writer", dir);
    snprintf(stage_path, sizeof stage_path, "%s/writer-stage", dir);
    jd_error_init(&error);
    jd_writer_init(&writer, file_path, &error);
    assert_true(jd_fd_hold(&fd, open(file_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)));
    assert_true(jd_fd_hold(&stage, open(stage_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)));
    assert_int_equal(jd_writer_start(&writer, &fd, &stage, header), 0);
    for (size_t bytes = 23; bytes <= 25; bytes++) {
        assert_int_equal(jd_writer_begin(&writer, 1, 40, true, JD_PATIENCE_NS, &room), 0);
        assert_int_equal(room.code_index, bytes == 25);
        jd_room_begin_record(&room, JIT_CODE_LOAD, 40);
        sink_zeros(&room.sink, bytes); /* a byte less than announced, right, a byte more */
        assert_int_equal(jd_writer_end(&room), bytes == 24 ? 0 : -EINVAL);
    }
    assert_int_equal(jd_writer_close(&writer), 0);
    struct dump_bytes bytes = read_dump(file_path);
    size_t offset = JITHEADER_BYTES;
    expect_record(&bytes, &offset, JIT_CODE_LOAD, 40);
    expect_end(&bytes, offset);
    free(bytes.data);
    jd_writer_destroy(&writer);
    close(fd.number);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_code_struct),
        TEST(test_missing_pointers),
        TEST(test_load),
        TEST(test_timestamps),
        TEST(test_no_code_bytes),
        TEST(test_debug_info),
        TEST(test_whole_group),
        TEST(test_empty_unwind_is_none),
        TEST(test_move_and_unload),
        TEST(test_large_function),
        TEST(test_too_large),
        TEST(test_unfinished_group_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
