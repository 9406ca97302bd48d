/* The records of a jitdump: their fields, and what makes one broken. */
#include "tests/unit/dump_builder.h"

enum { ADDR = 0x10000 };

static struct dump_builder built;

static void begin(void)
{
    dump_begin(&built, false, JITHEADER_BYTES);
}

/* The one record of BUILT contradicts itself, and the reader says so with WORDS. */
static void assert_broken(const char *words)
{
    struct jit_dump dump;
    struct jit_record record;
    read_only_record(&built, &dump, &record);
    assert_non_null(record.broken);
    if (!strstr(record.broken, words))
        fail_msg("'%s' does not say '%s'", record.broken, words);
    jit_dump_close(&dump);
}

/* ---- LOAD ---- */

static void assert_load(const char *name, const char *code)
{
    struct jit_dump dump;
    struct jit_record record;
    read_only_record(&built, &dump, &record);
    assert_null(record.broken);
    assert_int_equal(record.id, JIT_CODE_LOAD);
    assert_int_equal(record.timestamp, 5);
    assert_int_equal(record.load.pid, 4711);
    assert_int_equal(record.load.tid, 4712);
    assert_int_equal(record.load.vma, ADDR + 0x1000);
    assert_int_equal(record.load.code_addr, ADDR);
    assert_int_equal(record.load.code_index, 7);
    assert_string_equal(record.load.name, name);
    if (code) {
        assert_int_equal(record.load.code_size, strlen(code));
        assert_non_null(record.load.code);
        assert_memory_equal(record.load.code, code, strlen(code));
    } else {
        assert_null(record.load.code);
    }
    jit_dump_close(&dump);
}

static void test_load_with_name_and_code(void **state)
{
    (void)state;
    begin();
    dump_load(&built, 5, ADDR, "fib", "machine code", 7);
    assert_load("fib", "machine code");
}

static void test_load_without_name(void **state)
{
    (void)state;
    begin();
    size_t start = dump_begin_load(&built, 5, ADDR, 4, 7);
    sink_bytes(&built.sink, "code", 4);
    dump_end_record(&built, start);
    assert_load("", "code");
    begin();
    dump_load(&built, 5, ADDR, "", "code", 7);
    assert_load("", "code");
}

static void test_code_of_a_load_is_its_last_bytes(void **state)
{
    (void)state;
    begin();
    size_t start = dump_begin_load(&built, 5, ADDR, 4, 7);
    sink_cstr(&built.sink, "fib");
    sink_zeros(&built.sink, 13); /* padding */
    sink_bytes(&built.sink, "code", 4);
    dump_end_record(&built, start);
    assert_load("fib", "code");
}

static void dump_load_stub(uint64_t code_size)
{
    size_t start = dump_begin_load(&built, 5, ADDR, code_size, 7);
    sink_cstr(&built.sink, "stub");
    dump_end_record(&built, start);
}

static void test_load_without_code_bytes(void **state)
{
    (void)state;
    begin();
    dump_load_stub(400);
    assert_load("stub", NULL);
}

static void test_load_of_no_code(void **state)
{
    (void)state;
    begin();
    dump_load(&built, 5, ADDR, "nothing", "", 7);
    assert_load("nothing", "");
}

static void test_load_whose_name_does_not_end_is_broken(void **state)
{
    (void)state;
    begin();
    size_t start = dump_begin_load(&built, 5, ADDR, 400, 7);
    sink_bytes(&built.sink, "endless", 7);
    dump_end_record(&built, start);
    dump_load(&built, 6, ADDR, "behind it", "code", 8); /* whose NUL must not count */
    struct jit_dump dump;
    struct jit_record record;
    open_built_dump(&built, &dump);
    struct jit_dump_walk walk = jit_dump_begin(&dump);
    assert_int_equal(jit_dump_next(&walk, &record), JIT_DUMP_MORE);
    assert_string_equal(record.broken, "LOAD has a name without end");
    assert_int_equal(jit_dump_next(&walk, &record), JIT_DUMP_MORE);
    assert_null(record.broken);
    assert_string_equal(record.load.name, "behind it");
    jit_dump_close(&dump);
}

static void test_load_with_a_part_of_its_code_is_broken(void **state)
{
    (void)state;
    begin();
    size_t start = dump_begin_load(&built, 5, ADDR, 400, 7);
    sink_cstr(&built.sink, "fib");
    sink_zeros(&built.sink, 399);
    dump_end_record(&built, start);
    assert_broken("fewer bytes of code");
}

static void test_load_of_impossible_code_is_broken(void **state)
{
    (void)state;
    begin();
    dump_load_stub(UINT64_MAX);
    assert_broken("no process can have code");
    begin();
    dump_load_stub(1u << 30);
    assert_load("stub", NULL);
    begin();
    dump_load_stub((1u << 30) + 1);
    assert_broken("no process can have code");
    begin();
    dump_load(&built, 5, ADDR - 1, "in page 0", "code", 7);
    assert_broken("no process can have code");
}

static void test_records_shorter_than_their_fixed_part_are_broken(void **state)
{
    static const struct {
        uint32_t id, fixed_bytes;
    } records[] = {{JIT_CODE_LOAD, JR_CODE_LOAD_BYTES},
                   {JIT_CODE_MOVE, JR_CODE_MOVE_BYTES},
                   {JIT_CODE_UNLOAD, JR_CODE_UNLOAD_BYTES},
                   {JIT_CODE_DEBUG_INFO, JR_CODE_DEBUG_INFO_BYTES},
                   {JIT_CODE_INLINE_INFO, JR_CODE_INLINE_INFO_BYTES},
                   {JIT_CODE_PIECE, JR_CODE_PIECE_BYTES},
                   {JIT_INTERPRETED_FUNCTION, JR_INTERPRETED_FUNCTION_BYTES},
                   {JIT_CODE_UNWINDING_INFO, JR_CODE_UNWINDING_INFO_BYTES}};
    (void)state;
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++)
        for (size_t bytes = JR_PREFIX_BYTES; bytes < records[i].fixed_bytes; bytes++) {
            begin();
            dump_plain(&built, records[i].id, 5, bytes - JR_PREFIX_BYTES);
            assert_broken("shorter than its fixed part");
        }
}

/* ---- The other records ---- */

static void test_move_and_unload(void **state)
{
    struct jit_dump dump;
    struct jit_record record;
    (void)state;
    begin();
    dump_move(&built, 5, ADDR, ADDR + 64, 32, 7);
    read_only_record(&built, &dump, &record);
    assert_null(record.broken);
    const struct jit_move move = {4711, 4712, ADDR + 64, ADDR, ADDR + 64, 32, 7};
    assert_memory_equal(&record.move, &move, sizeof move);
    jit_dump_close(&dump);
    begin();
    dump_unload(&built, 5, ADDR, 32, 7);
    read_only_record(&built, &dump, &record);
    assert_null(record.broken);
    const struct jit_unload unload = {4711, 4712, ADDR, 32, 7};
    assert_memory_equal(&record.unload, &unload, sizeof unload);
    jit_dump_close(&dump);
}

static void test_moves_and_unloads_at_impossible_addresses_are_broken(void **state)
{
    (void)state;
    begin();
    dump_move(&built, 5, 0, ADDR, 32, 7);
    assert_broken("no process can have code");
    begin();
    dump_move(&built, 5, ADDR, UINT64_MAX - 1, 32, 7);
    assert_broken("no process can have code");
    begin();
    dump_unload(&built, 5, UINT64_MAX - 1, 32, 7);
    assert_broken("no process can have code");
}

/* A DEBUG_INFO that announces NR_ENTRY entries and holds two. */
static void put_debug_info(uint64_t nr_entry)
{
    begin();
    size_t start = dump_begin_record(&built, JIT_CODE_DEBUG_INFO, 5);
    sink_u64(&built.sink, ADDR);
    sink_u64(&built.sink, nr_entry);
    for (uint32_t i = 1; i <= 2; i++) {
        sink_u64(&built.sink, ADDR + i);
        sink_u32(&built.sink, 10 * i);
        sink_u32(&built.sink, 100 * i);
        sink_cstr(&built.sink, i == 1 ? "a.js" : "");
    }
    dump_end_record(&built, start);
}

static void test_debug_info_entry_after_entry(void **state)
{
    struct jit_dump dump;
    struct jit_record record;
    struct jit_debug_entry entry;
    size_t at = 0;
    (void)state;
    put_debug_info(2);
    read_only_record(&built, &dump, &record);
    assert_null(record.broken);
    assert_int_equal(record.debug_info.code_addr, ADDR);
    assert_int_equal(record.debug_info.nr_entry, 2);
    assert_true(jit_debug_entry_next(&record.debug_info, &at, &entry));
    assert_int_equal(entry.addr, ADDR + 1);
    assert_int_equal(entry.line, 10);
    assert_int_equal(entry.discrim, 100);
    assert_string_equal(entry.name, "a.js");
    assert_true(jit_debug_entry_next(&record.debug_info, &at, &entry));
    assert_int_equal(entry.line, 20);
    assert_string_equal(entry.name, "");
    assert_false(jit_debug_entry_next(&record.debug_info, &at, &entry));
    jit_dump_close(&dump);
}

static void test_debug_info_with_impossibly_many_entries_is_broken(void **state)
{
    (void)state;
    put_debug_info(3);
    assert_broken("more entries than it can hold");
    put_debug_info(UINT64_MAX);
    assert_broken("more entries than it can hold");
    begin();
    dump_plain(&built, JIT_CODE_DEBUG_INFO, 5, 16 + 16);
    built.bytes[JITHEADER_BYTES + 24] = 1; /* whose name has no room */
    assert_broken("more entries than it can hold");
}

static void test_debug_entry_without_end_does_not_fit(void **state)
{
    struct jit_dump dump;
    struct jit_record record;
    struct jit_debug_entry entry;
    size_t at = 0;
    (void)state;
    begin();
    size_t start = dump_begin_record(&built, JIT_CODE_DEBUG_INFO, 5);
    sink_u64(&built.sink, ADDR);
    sink_u64(&built.sink, 1);
    sink_zeros(&built.sink, 16);
    sink_bytes(&built.sink, "endless", 7);
    dump_end_record(&built, start);
    read_only_record(&built, &dump, &record);
    assert_null(record.broken);
    assert_false(jit_debug_entry_next(&record.debug_info, &at, &entry));
    jit_dump_close(&dump);
}

static void test_unwinding_info_with_padding(void **state)
{
    struct jit_dump dump;
    struct jit_record record;
    (void)state;
    begin();
    dump_unwinding(&built, 5, 40, 20, 48);
    read_only_record(&built, &dump, &record);
    assert_null(record.broken);
    assert_int_equal(record.unwinding_info.unwinding_size, 40);
    assert_int_equal(record.unwinding_info.eh_frame_hdr_size, 20);
    assert_int_equal(record.unwinding_info.mapped_size, 40);
    assert_ptr_equal(record.unwinding_info.data, dump.data + JITHEADER_BYTES + 40);
    jit_dump_close(&dump);
}

static void test_unwinding_info_with_contradictory_sizes_is_broken(void **state)
{
    (void)state;
    begin();
    dump_unwinding(&built, 5, 41, 20, 40);
    assert_broken("fewer bytes than it says");
    begin();
    dump_unwinding(&built, 5, UINT64_MAX, 20, 40);
    assert_broken("fewer bytes than it says");
    begin();
    dump_unwinding(&built, 5, 40, 41, 40);
    assert_broken("header larger than the whole");
}

static void test_close_filler_and_unknown_records_pass(void **state)
{
    static const uint32_t ids[] = {JIT_CODE_CLOSE, JIT_FILLER, 5, 0xffffffff};
    (void)state;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        struct jit_dump dump;
        struct jit_record record;
        begin();
        dump_plain(&built, ids[i], 5, i * 8);
        read_only_record(&built, &dump, &record);
        assert_null(record.broken);
        assert_int_equal(record.id, ids[i]);
        assert_int_equal(record.total_size, 16 + i * 8);
        assert_int_equal(jit_record_name(ids[i]) != NULL, i < 2);
        jit_dump_close(&dump);
    }
}

static void put_piece(bool big_endian, uint32_t number, uint32_t count)
{
    dump_begin(&built, big_endian, JITHEADER_BYTES);
    size_t start = dump_begin_record(&built, JIT_CODE_PIECE, 5);
    sink_u64(&built.sink, ADDR);
    sink_u64(&built.sink, 7);
    sink_u32(&built.sink, number);
    sink_u32(&built.sink, count);
    dump_end_record(&built, start);
}

static void test_piece(void **state)
{
    struct jit_dump dump;
    struct jit_record record;
    (void)state;
    for (int big_endian = 0; big_endian < 2; big_endian++) {
        put_piece(big_endian, 2, 3);
        read_only_record(&built, &dump, &record);
        assert_null(record.broken);
        const struct jit_piece piece = {ADDR, 7, 2, 3};
        assert_memory_equal(&record.piece, &piece, sizeof piece);
        jit_dump_close(&dump);
    }
    assert_string_equal(jit_record_name(JIT_CODE_PIECE), "CODE_PIECE");
    put_piece(false, 3, 3);
    assert_broken("not below its count");
    put_piece(false, 0, 0);
    assert_broken("not below its count");
}

/* ---- Interpreters ---- */

static void put_interpreter(uint32_t frame_register, int32_t offset, uint32_t position_register,
                            size_t more)
{
    begin();
    size_t start = dump_begin_record(&built, JIT_INTERPRETER_FRAME, 5);
    sink_u64(&built.sink, ADDR);
    sink_u64(&built.sink, 100);
    sink_u32(&built.sink, frame_register);
    sink_u32(&built.sink, (uint32_t)offset);
    sink_u32(&built.sink, 0);
    sink_u32(&built.sink, position_register);
    sink_zeros(&built.sink, more);
    dump_end_record(&built, start);
}

static void test_frames_of_interpreters(void **state)
{
    struct jit_dump dump;
    struct jit_record record;
    (void)state;
    put_interpreter(63, -65535, JIT_REGISTER_NONE, 0);
    read_only_record(&built, &dump, &record);
    assert_null(record.broken);
    const struct jit_interpreter frame = {ADDR, 100, 63, -65535, 0, JIT_REGISTER_NONE};
    assert_memory_equal(&record.interpreter, &frame, sizeof frame);
    jit_dump_close(&dump);
    put_interpreter(64, 8, 0, 0);
    assert_broken("a register that no machine has");
    put_interpreter(6, 8, 64, 0);
    assert_broken("a register that no machine has");
    put_interpreter(6, -65536, 0, 0);
    assert_broken("outside of any frame");
    put_interpreter(6, 8, 0, 1);
    assert_broken("not as long as it must be");
}

/* A function of 7 bytes with NR_LINE lines, which are the BYTES at LINES. */
static void put_interpreted(uint32_t nr_line, const char *lines, size_t bytes)
{
    begin();
    size_t start = dump_begin_record(&built, JIT_INTERPRETED_FUNCTION, 5);
    sink_u64(&built.sink, ADDR);
    sink_u32(&built.sink, 88);
    sink_u32(&built.sink, 7);
    sink_u64(&built.sink, 2 * ADDR);
    sink_u32(&built.sink, nr_line);
    sink_u32(&built.sink, (uint32_t)bytes);
    sink_cstr(&built.sink, "f");
    sink_cstr(&built.sink, "a.js");
    sink_bytes(&built.sink, lines, bytes);
    dump_end_record(&built, start);
}

static void test_interpreted_functions(void **state)
{
    struct jit_dump dump;
    struct jit_record record;
    struct jit_position row = {0, 0};
    (void)state;
    put_interpreted(2, "\0\4\6\x7e", 4);
    read_only_record(&built, &dump, &record);
    assert_null(record.broken);
    const struct jit_interpreted *function = &record.interpreted;
    assert_int_equal(function->function, ADDR);
    assert_int_equal(function->position, 2 * ADDR);
    assert_string_equal(function->name, "f");
    assert_string_equal(function->file, "a.js");
    struct byte_cursor rows = jit_interpreted_rows(function);
    assert_true(jit_position_next(&rows, function, &row));
    assert_int_equal(row.offset << 8 | row.line, 0 << 8 | 4);
    assert_true(jit_position_next(&rows, function, &row));
    assert_int_equal(row.offset << 8 | row.line, 6 << 8 | 2);
    assert_false(jit_position_next(&rows, function, &row));
    jit_dump_close(&dump);
    put_interpreted(1, "\7\4", 2);
    assert_broken("a line outside of it");
    put_interpreted(2, "\6\4\1\4", 4);
    assert_broken("a line outside of it");
    put_interpreted(1, "\1\x7f", 2);
    assert_broken("a line outside of it"); /* -1 */
    put_interpreted(2, "\1\1", 2);
    assert_broken("a line outside of it");
    put_interpreted(0, "\1\1", 2);
    assert_broken("more lines than it says");
    assert_string_equal(jit_record_name(JIT_INTERPRETED_FUNCTION), "INTERPRETED_FUNCTION");
    assert_string_equal(jit_record_name(JIT_INTERPRETER_FRAME), "INTERPRETER_FRAME");
}

static void test_an_interpreted_functions_texts_end_in_it(void **state)
{
    (void)state;
    put_interpreted(0, "", 0);
    for (uint32_t cut = 1; cut < 8; cut++) {
        dump_set_size(&built, JITHEADER_BYTES, JR_INTERPRETED_FUNCTION_BYTES + 7 - cut);
        built.sink.size--;
        assert_broken("a name without end");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load_with_name_and_code),
        cmocka_unit_test(test_load_without_name),
        cmocka_unit_test(test_code_of_a_load_is_its_last_bytes),
        cmocka_unit_test(test_load_without_code_bytes),
        cmocka_unit_test(test_load_of_no_code),
        cmocka_unit_test(test_load_whose_name_does_not_end_is_broken),
        cmocka_unit_test(test_load_with_a_part_of_its_code_is_broken),
        cmocka_unit_test(test_load_of_impossible_code_is_broken),
        cmocka_unit_test(test_records_shorter_than_their_fixed_part_are_broken),
        cmocka_unit_test(test_move_and_unload),
        cmocka_unit_test(test_moves_and_unloads_at_impossible_addresses_are_broken),
        cmocka_unit_test(test_debug_info_entry_after_entry),
        cmocka_unit_test(test_debug_info_with_impossibly_many_entries_is_broken),
        cmocka_unit_test(test_debug_entry_without_end_does_not_fit),
        cmocka_unit_test(test_unwinding_info_with_padding),
        cmocka_unit_test(test_unwinding_info_with_contradictory_sizes_is_broken),
        cmocka_unit_test(test_piece),
        cmocka_unit_test(test_frames_of_interpreters),
        cmocka_unit_test(test_interpreted_functions),
        cmocka_unit_test(test_an_interpreted_functions_texts_end_in_it),
        cmocka_unit_test(test_close_filler_and_unknown_records_pass),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
