/* Rows by offset, functions in several pieces, and code that is read elsewhere than it runs: every
 * byte, every refusal. */
#include "tests/unit/jitdump_test.h"

#include <sys/mman.h>

enum { HOT = 0x40000, COLD = 0x90000, LATE = 0x50000 };

static const uint8_t CODE[64] = {0x90, 0x91, 0x92};

static struct jitdump *open_with(uint32_t flags)
{
    struct jitdump *dump;
    struct jitdump_options options = options_in_dir();
    options.flags |= flags;
    assert_int_equal(jitdump_open(&dump, &options), 0);
    assert_non_null(dump);
    return dump;
}

static struct jitdump_code code_at(uint64_t addr, uint64_t size, const char *name)
{
    return code_with_bytes(addr, CODE, size, name);
}

static struct dump_bytes dump_of(const struct jitdump_code *code)
{
    struct jitdump *dump = open_with(0);
    int error = jitdump_add_code(dump, code, NULL);
    if (error)
        fail_msg("%s", jitdump_error(dump));
    assert_int_equal(jitdump_close(dump), 0);
    return read_dump(path);
}

/* Two dumps are one, but for their times and threads. */
static void assert_same_records(const struct dump_bytes *a, const struct dump_bytes *b)
{
    struct record left = {0}, right = {0};
    size_t at = JITHEADER_BYTES, other_at = JITHEADER_BYTES, count = 0;
    while (next_record(a, &at, &left)) {
        size_t from = JR_PREFIX_BYTES;
        assert_true(next_record(b, &other_at, &right));
        assert_int_equal(left.id, right.id);
        assert_int_equal(left.total_size, right.total_size);
        assert_memory_equal(a->data + left.offset + from, b->data + right.offset + from,
                            left.total_size - from);
        count++;
    }
    assert_false(next_record(b, &other_at, &right));
    assert_true(count > 1);
}

/* ---- Rows by offset ---- */

static void relative_rows(uint64_t buffer_offset)
{
    static const struct jitdump_inline calls[] = {
        {"g", "a.js", "b.js", 3, 5, 10, JITDUMP_NOT_INLINED}};
    static const uint32_t own[] = {0, JITDUMP_NOT_INLINED, JITDUMP_NOT_INLINED};
    struct jitdump_line absolute[] = {
        {HOT + 8, "b.js", 10, 1}, {HOT, "a.js", 2, 1}, {HOT + 40, NULL, 0, 0}};
    struct jitdump_line relative[3];
    struct jitdump_code code = code_at(HOT, 40, "f"), other = code;
    memcpy(relative, absolute, sizeof absolute);
    for (size_t i = 0; i < 3; i++)
        relative[i].addr = absolute[i].addr - HOT + buffer_offset;
    code.lines = absolute;
    other.lines = relative;
    code.line_count = other.line_count = 3;
    code.inlines = other.inlines = calls;
    code.inline_count = other.inline_count = 1;
    code.line_inlines = other.line_inlines = own;
    other.flags = JITDUMP_RELATIVE;
    other.buffer_offset = buffer_offset;
    struct dump_bytes a = dump_of(&code);
    remove_dump(path);
    struct dump_bytes b = dump_of(&other);
    remove_dump(path);
    assert_same_records(&a, &b);
    free(a.data);
    free(b.data);
}

static void test_relative_rows_are_the_same_bytes(void **state)
{
    (void)state;
    relative_rows(0);
    relative_rows(4096);
    relative_rows(UINT64_C(1) << 40);
}

static void assert_refused(const struct jitdump_code *code, int error, const char *text)
{
    struct jitdump *dump = open_with(0);
    uint64_t index = 0;
    assert_int_equal(jitdump_add_code(dump, code, &index), error);
    assert_int_equal(index, JITDUMP_NO_CODE);
    assert_int_equal(jitdump_lost(dump), 1);
    if (!strstr(jitdump_error(dump), text))
        fail_msg("%s", jitdump_error(dump));
    assert_int_equal(jitdump_close(dump), error);
    assert_int_equal(count_records(path, JIT_CODE_LOAD), 0);
    remove_dump(path);
}

static void test_rows_that_are_refused(void **state)
{
    struct jitdump_line row = {41, "a.js", 1, 0};
    struct jitdump_code code = code_at(HOT, 40, "f");
    (void)state;
    code.lines = &row;
    code.line_count = 1;
    code.flags = JITDUMP_RELATIVE;
    assert_refused(&code, -EINVAL, "not an offset into the function");
    row.addr = HOT; /* an address */
    assert_refused(&code, -EINVAL, "not an offset into the function");
    code.buffer_offset = 100;
    row.addr = 99;
    assert_refused(&code, -EINVAL, "not an offset into the function");
    code.flags = 0;
    assert_refused(&code, -EINVAL, "JITDUMP_RELATIVE is not");
    code.buffer_offset = 0;
    code.flags = 0x80;
    assert_refused(&code, -EINVAL, "unknown flag");
    code.flags = UINT64_C(1) << 40;
    assert_refused(&code, -EINVAL, "unknown flag");
}

/* ---- Pieces ---- */

static void expect_piece(const struct dump_bytes *bytes, size_t *offset, struct record *record,
                         uint64_t addr, uint64_t index, uint32_t number, uint32_t count)
{
    assert_true(next_record(bytes, offset, record));
    assert_int_equal(record->id, JIT_CODE_PIECE);
    assert_int_equal(record->id, 0x504a0004);
    assert_int_equal(record->total_size, 40);
    assert_int_equal(cursor_u64(&record->body), addr);
    assert_int_equal(cursor_u64(&record->body), index);
    assert_int_equal(cursor_u32(&record->body), number);
    assert_int_equal(cursor_u32(&record->body), count);
}

static void expect_load(const struct dump_bytes *bytes, size_t *offset, struct record *record,
                        uint64_t addr, uint64_t size, uint64_t index, const char *name)
{
    assert_true(next_record(bytes, offset, record));
    assert_int_equal(record->id, JIT_CODE_LOAD);
    cursor_skip(&record->body, 16); /* pid, tid, vma */
    assert_int_equal(cursor_u64(&record->body), addr);
    assert_int_equal(cursor_u64(&record->body), size);
    assert_int_equal(cursor_u64(&record->body), index);
    assert_string_equal(cursor_cstr(&record->body), name);
    assert_int_equal(cursor_left(&record->body), size);
    assert_memory_equal(cursor_bytes(&record->body, (size_t)size), CODE, size);
}

static void expect_row(const struct dump_bytes *bytes, size_t *offset, struct record *record,
                       uint64_t addr, uint64_t row_addr)
{
    assert_true(next_record(bytes, offset, record));
    assert_int_equal(record->id, JIT_CODE_DEBUG_INFO);
    assert_int_equal(cursor_u64(&record->body), addr);
    assert_int_equal(cursor_u64(&record->body), 1);
    assert_int_equal(cursor_u64(&record->body), row_addr);
}

static void test_every_byte_of_a_function_in_pieces(void **state)
{
    static const uint8_t tables[8];
    const struct jitdump_unwind unwind = {tables, sizeof tables, 0, sizeof tables};
    const struct jitdump_line hot_row = {HOT + 4, "a.js", 1, 0}, cold_row = {4100, "a.js", 9, 0};
    struct jitdump_code code = code_at(HOT, 16, "f"), pieces[3];
    struct jitdump *dump = open_with(0);
    struct record record = {0}, first = {0};
    size_t offset = JITHEADER_BYTES;
    uint64_t index;
    (void)state;
    assert_int_equal(jitdump_add_code(dump, &code, &index), 0);
    pieces[0] = code_at(COLD, 32, NULL);
    pieces[0].unwind = &unwind;
    pieces[0].lines = &cold_row;
    pieces[0].line_count = 1;
    pieces[0].flags = JITDUMP_RELATIVE;
    pieces[0].buffer_offset = 4096;
    pieces[1] = code_at(0x1000, 0, NULL); /* nothing cold of this kind */
    pieces[2] = code_at(LATE, 8, NULL);
    code.lines = &hot_row;
    code.line_count = 1;
    code.pieces = pieces;
    code.piece_count = 3;
    assert_int_equal(jitdump_add_code(dump, &code, &index), 0);
    assert_int_equal(index, 1);
    code.piece_count = 0;
    code.line_count = 0;
    assert_int_equal(jitdump_add_code(dump, &code, &index), 0);
    assert_int_equal(index, 5);
    assert_int_equal(jitdump_lost(dump), 0);
    assert_int_equal(jitdump_close(dump), 0);
    struct dump_bytes bytes = read_dump(path);
    expect_load(&bytes, &offset, &record, HOT, 16, 0, "f");
    expect_piece(&bytes, &offset, &first, HOT, 1, 0, 4);
    expect_row(&bytes, &offset, &record, HOT, HOT + 4);
    expect_load(&bytes, &offset, &record, HOT, 16, 1, "f");
    expect_piece(&bytes, &offset, &record, COLD, 1, 1, 4);
    assert_true(next_record(&bytes, &offset, &record));
    assert_int_equal(record.id, JIT_CODE_UNWINDING_INFO);
    expect_row(&bytes, &offset, &record, COLD, COLD + 4);
    expect_load(&bytes, &offset, &record, COLD, 32, 2, "f");
    expect_piece(&bytes, &offset, &record, LATE, 1, 3, 4);
    expect_load(&bytes, &offset, &record, LATE, 8, 4, "f");
    assert_int_equal(record.timestamp, first.timestamp); /* one group */
    expect_load(&bytes, &offset, &record, HOT, 16, 5, "f");
    assert_true(record.timestamp > first.timestamp);
    free(bytes.data);
}

enum { MANY = 3000 };

/* A group that goes past the stage gets its indices after it was put together. */
static void large_function(uint32_t flags)
{
    struct jitdump_code code = code_at(HOT, 16, "large"), *pieces = calloc(MANY, sizeof *pieces);
    struct jitdump *dump = open_with(flags);
    struct record record = {0};
    size_t offset = JITHEADER_BYTES;
    uint64_t index;
    for (unsigned i = 0; i < MANY; i++)
        pieces[i] = code_at(COLD + i * UINT64_C(64), i % 7 ? 48 : 0, NULL);
    assert_int_equal(jitdump_add_code(dump, &code, &index), 0);
    code.pieces = pieces;
    code.piece_count = MANY;
    assert_int_equal(jitdump_add_code(dump, &code, &index), 0);
    assert_int_equal(index, 1);
    code.piece_count = 0;
    assert_int_equal(jitdump_add_code(dump, &code, &index), 0);
    assert_int_equal(index, MANY + 2);
    assert_int_equal(jitdump_close(dump), 0);
    struct dump_bytes bytes = read_dump(path);
    expect_load(&bytes, &offset, &record, HOT, 16, 0, "large");
    expect_piece(&bytes, &offset, &record, HOT, 1, 0, MANY + 1);
    expect_load(&bytes, &offset, &record, HOT, 16, 1, "large");
    for (unsigned i = 0; i < MANY; i++)
        if (i % 7) {
            uint64_t addr = COLD + i * UINT64_C(64);
            expect_piece(&bytes, &offset, &record, addr, 1, i + 1, MANY + 1);
            expect_load(&bytes, &offset, &record, addr, 48, i + 2, "large");
        }
    expect_load(&bytes, &offset, &record, HOT, 16, MANY + 2, "large");
    free(bytes.data);
    free(pieces);
    remove_dump(path);
}

static void test_a_function_of_three_thousand_pieces(void **state)
{
    (void)state;
    large_function(0);
    large_function(JITDUMP_UNMAPPED);
}

static void test_pieces_that_are_refused(void **state)
{
    const struct jitdump_code hot = code_at(HOT, 16, "f"), cold = code_at(COLD, 16, NULL);
    struct jitdump_code code = hot, piece = cold;
    (void)state;
    code.piece_count = 1;
    assert_refused(&code, -EINVAL, "pieces is NULL");
    code.pieces = &piece;
    piece.name = "g";
    assert_refused(&code, -EINVAL, "pieces[0]: name is set");
    piece = cold;
    piece.pieces = &piece;
    piece.piece_count = 1;
    assert_refused(&code, -EINVAL, "pieces[0]: piece_count is set");
    piece = cold;
    piece.size = 0;
    assert_refused(&code, -EINVAL, "size is not set");
    piece.size = sizeof piece - sizeof(size_t);
    assert_refused(&code, -EINVAL, "pieces[0]: size is not that");
    piece = cold;
    piece.code_addr = HOT + 15;
    assert_refused(&code, -EINVAL, "overlap at 0x4000f");
    piece.code_addr = HOT - 15;
    assert_refused(&code, -EINVAL, "overlap at 0x40000");
    piece.code_addr = UINT64_MAX - 8;
    assert_refused(&code, -EINVAL, "pieces[0]: past the end");
    piece = cold;
    piece.line_count = 1;
    assert_refused(&code, -EINVAL, "lines is NULL");
    piece = cold;
    piece.inline_count = 1;
    assert_refused(&code, -EINVAL, "inlines is NULL");
    piece = cold;
    code.code_size = 0;
    assert_refused(&code, -EINVAL, "code_size is 0");
    code.code_size = 16;
    code.piece_count = SIZE_MAX / 2;
    assert_refused(&code, -EFBIG, "more pieces");
    code.piece_count = 1;
    piece.code_size = UINT64_C(5) << 30;
    piece.bytes = NULL;
    assert_refused(&code, -EFBIG, "4 GiB");
}

static void test_pieces_off_or_not_open(void **state)
{
    struct jitdump_code code = code_at(HOT, 16, "f"), piece = code_at(COLD, 16, NULL);
    struct jitdump_piece_move move = {HOT, LATE, 16};
    struct jitdump *dump = NULL;
    uint64_t index = 0;
    (void)state;
    code.pieces = &piece;
    code.piece_count = 1;
    assert_int_equal(jitdump_add_code(dump, &code, &index), 0);
    assert_int_equal(index, JITDUMP_NO_CODE);
    assert_int_equal(jitdump_move_pieces(dump, index, &move, 1), 0);
    assert_int_equal(jitdump_move_pieces(dump, 1, NULL, 1), 0);
    dump = open_with(0);
    assert_int_equal(jitdump_move_pieces(dump, JITDUMP_NO_CODE, &move, 1), 0);
    assert_int_equal(jitdump_lost(dump), 0);
    assert_int_equal(jitdump_move_pieces(dump, 0, NULL, 1), -EINVAL);
    assert_non_null(strstr(jitdump_error(dump), "moves is NULL"));
    assert_int_equal(jitdump_lost(dump), 1);
    jitdump_close(dump);
}

/* The first error of a move is returned after all were tried. */
static void test_every_move_of_a_piece_is_tried(void **state)
{
    static const struct jitdump_piece_move moves[] = {
        {HOT, LATE, 16}, {COLD, COLD, 16}, {COLD + 64, HOT, 8}};
    struct jitdump_options options = options_in_dir();
    struct jitdump *dump;
    (void)state;
    options.dir = "/nonexistent";
    assert_int_equal(jitdump_open(&dump, &options), -ENOENT);
    assert_int_equal(jitdump_move_pieces(dump, 0, moves, 3), -ENOENT);
    assert_int_equal(jitdump_lost(dump), 2);
    assert_int_equal(jitdump_close(dump), -ENOENT);
}

static void test_moves_of_pieces(void **state)
{
    static const struct jitdump_piece_move moves[] = {
        {HOT, LATE, 16}, {COLD, COLD, 16}, {0, 0, 0}, {COLD + 64, HOT, 8}};
    struct jitdump_code code = code_at(HOT, 16, "f");
    struct jitdump_code pieces[] = {code_at(COLD, 16, NULL), code_at(COLD, 0, NULL),
                                    code_at(COLD + 64, 8, NULL)};
    static const uint64_t expected[][4] = {{HOT, LATE, 16, 1}, {COLD + 64, HOT, 8, 4}};
    struct jitdump *dump = open_with(0);
    struct record record = {0};
    size_t offset = JITHEADER_BYTES, count = 0;
    uint64_t index;
    (void)state;
    assert_int_equal(jitdump_add(dump, "first", CODE, sizeof CODE, NULL), 0);
    code.pieces = pieces;
    code.piece_count = 3;
    assert_int_equal(jitdump_add_code(dump, &code, &index), 0);
    assert_int_equal(jitdump_move_pieces(dump, index, moves, 4), 0);
    assert_int_equal(jitdump_unload_code(dump, index, LATE, 16), 0);
    assert_int_equal(jitdump_close(dump), 0);
    struct dump_bytes bytes = read_dump(path);
    while (next_record(&bytes, &offset, &record)) {
        if (record.id != JIT_CODE_MOVE)
            continue;
        assert_in_range(count, 0, 1);
        cursor_skip(&record.body, 16);
        for (size_t i = 0; i < 4; i++)
            assert_int_equal(cursor_u64(&record.body), expected[count][i]);
        count++;
    }
    assert_int_equal(count, 2);
    assert_int_equal(count_records(path, JIT_CODE_UNLOAD), 1);
    free(bytes.data);
}

static void test_out_of_sight_a_function_in_pieces_counts_once(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *none = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct jitdump_code code = code_at(HOT, 16, "f");
    struct jitdump_code pieces[] = {code_at(COLD, 16, NULL), code_at(LATE, 8, NULL)};
    struct jitdump *dump = open_with(0);
    (void)state;
    pieces[0].bytes = pieces[1].bytes = none;
    code.pieces = pieces;
    code.piece_count = 2;
    assert_int_equal(jitdump_add_code(dump, &code, NULL), 0);
    assert_int_equal(jitdump_unreadable(dump), 1);
    assert_int_equal(jitdump_close(dump), 0);
    assert_int_equal(count_records(path, JIT_CODE_LOAD), 3);
    munmap(none, page);
}

/* ---- Two views of one arena ---- */

/* Where the code runs nothing can be read: only the other view is looked at, and only during the
 * call. */
static void test_two_views_of_one_arena(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int fd = memfd_create("arena", MFD_CLOEXEC);
    struct record record = {0};
    size_t offset = JITHEADER_BYTES;
    (void)state;
    assert_int_equal(ftruncate(fd, (off_t)page), 0);
    uint8_t *writable = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    uint8_t *runs = mmap(NULL, page, PROT_NONE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(writable, MAP_FAILED);
    assert_ptr_not_equal(runs, MAP_FAILED);
    memcpy(writable, CODE, sizeof CODE);
    struct jitdump_code code = code_at((uint64_t)(uintptr_t)runs, sizeof CODE, "f");
    struct jitdump *dump = open_with(0);
    code.bytes = writable;
    assert_int_equal(jitdump_add_code(dump, &code, NULL), 0);
    memset(writable, 0xcc, page);
    munmap(writable, page);
    assert_int_equal(jitdump_unreadable(dump), 0);
    assert_int_equal(jitdump_close(dump), 0);
    struct dump_bytes bytes = read_dump(path);
    expect_load(&bytes, &offset, &record, code.code_addr, sizeof CODE, 0, "f");
    free(bytes.data);
    munmap(runs, page);
    close(fd);
}

/* ---- Structs of other versions ---- */

/* The struct of the header before these members. */
static void test_a_shorter_struct_has_none_of_it(void **state)
{
    struct jitdump_code code = code_at(HOT, 16, "f");
    (void)state;
    code.size = offsetof(struct jitdump_code, flags);
    code.flags = UINT64_MAX; /* not a member for that program */
    code.buffer_offset = 1;
    code.piece_count = 7;
    struct dump_bytes bytes = dump_of(&code);
    assert_int_equal(count_records(path, JIT_CODE_LOAD), 1);
    free(bytes.data);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_relative_rows_are_the_same_bytes),
        TEST(test_rows_that_are_refused),
        TEST(test_every_byte_of_a_function_in_pieces),
        TEST(test_a_function_of_three_thousand_pieces),
        TEST(test_pieces_that_are_refused),
        TEST(test_pieces_off_or_not_open),
        TEST(test_moves_of_pieces),
        TEST(test_every_move_of_a_piece_is_tried),
        TEST(test_out_of_sight_a_function_in_pieces_counts_once),
        TEST(test_two_views_of_one_arena),
        TEST(test_a_shorter_struct_has_none_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
