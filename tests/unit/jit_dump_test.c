/* The jitdump reader: headers, every record, what it calls broken, and files cut at any byte. */
#include "tests/unit/dump_builder.h"

#include <fcntl.h>

enum { ADDR = 0x10000 };

static struct dump_builder built;

static void begin(void)
{
    dump_begin(&built, false, JITHEADER_BYTES);
}

/* Open BUILT, which holds one record, and read that. */
static void read_one(struct jit_dump *dump, struct jit_record *record)
{
    open_built_dump(&built, dump);
    struct jit_dump_walk walk = jit_dump_begin(dump);
    assert_int_equal(jit_dump_next(&walk, record), JIT_DUMP_MORE);
    assert_int_equal(jit_dump_next(&walk, &(struct jit_record){0}), JIT_DUMP_WHOLE);
}

/* The one record of BUILT contradicts itself, and the reader says so with WORDS. */
static void assert_broken(const char *words)
{
    struct jit_dump dump;
    struct jit_record record;
    read_one(&dump, &record);
    assert_non_null(record.broken);
    if (!strstr(record.broken, words))
        fail_msg("'%s' does not say '%s'", record.broken, words);
    jit_dump_close(&dump);
}

static void assert_refused(size_t size, const char *words)
{
    char cause[256];
    struct jit_dump dump;
    write_scratch(built.bytes, size);
    assert_int_equal(jit_dump_open(&dump, scratch_file, cause, sizeof cause), -1);
    if (!strstr(cause, words))
        fail_msg("'%s' does not say '%s'", cause, words);
    jit_dump_close(&dump);
}

/* ---- The header ---- */

static void assert_header(bool big_endian, uint32_t header_bytes)
{
    struct jit_dump dump;
    struct jit_record record;
    dump_begin(&built, big_endian, header_bytes);
    dump_load(&built, 5, ADDR, "fib", "code", 1);
    read_one(&dump, &record);
    assert_memory_equal(dump.data, big_endian ? "JiTD" : "DTiJ", 4);
    assert_int_equal(dump.big_endian, big_endian);
    assert_int_equal(dump.version, 1);
    assert_int_equal(dump.header_bytes, header_bytes);
    assert_int_equal(dump.elf_mach, EM_X86_64);
    assert_int_equal(dump.pid, 4711);
    assert_int_equal(dump.timestamp, 99);
    assert_int_equal(record.offset, header_bytes);
    assert_string_equal(record.load.name, "fib");
    jit_dump_close(&dump);
}

static void test_reads_headers_of_both_byte_orders(void **state)
{
    (void)state;
    assert_header(false, JITHEADER_BYTES);
    assert_header(true, JITHEADER_BYTES);
}

static void test_records_begin_behind_a_longer_header(void **state)
{
    (void)state;
    assert_header(false, 48);
    assert_header(true, 200);
}

static void test_refuses_what_is_no_jitdump(void **state)
{
    (void)state;
    begin();
    assert_refused(0, "0 bytes long");
    assert_refused(39, "39 bytes long");
    built.bytes[0] = 'X';
    assert_refused(40, "not a jitdump");
}

static void test_refuses_impossible_header_sizes(void **state)
{
    (void)state;
    begin();
    built.bytes[8] = 39;
    assert_refused(40, "39 bytes long");
    built.bytes[8] = 41;
    assert_refused(40, "41 bytes long");
}

static void test_refuses_missing_and_irregular_files(void **state)
{
    char cause[256] = "";
    struct jit_dump dump;
    (void)state;
    unlink(scratch_file);
    assert_int_equal(jit_dump_open(&dump, scratch_file, cause, sizeof cause), -1);
    assert_string_equal(cause, "No such file or directory");
    jit_dump_close(&dump);
    assert_int_equal(mkfifo(scratch_file, 0600), 0);
    assert_int_equal(jit_dump_open(&dump, scratch_file, cause, sizeof cause), -1);
    assert_string_equal(cause, "not a regular file");
    jit_dump_close(&dump);
    unlink(scratch_file);
    assert_int_equal(jit_dump_open(&dump, scratch, cause, sizeof cause), -1);
    assert_string_equal(cause, "not a regular file");
    jit_dump_close(&dump);
}

static void test_addresses_are_as_wide_as_the_machine(void **state)
{
    static const uint8_t machines[] = {EM_386, EM_ARM, EM_PPC, EM_AARCH64, EM_S390, EM_X86_64};
    struct jit_dump dump;
    (void)state;
    begin();
    for (size_t i = 0; i < sizeof machines; i++) {
        built.bytes[12] = machines[i];
        open_built_dump(&built, &dump);
        assert_int_equal(dump.address_bytes, i < 3 ? 4 : 8);
        jit_dump_close(&dump);
    }
}

/* ---- LOAD ---- */

static void assert_load(const char *name, const char *code)
{
    struct jit_dump dump;
    struct jit_record record;
    read_one(&dump, &record);
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
                   {JIT_CODE_DEBUG_INFO2, JR_CODE_DEBUG_INFO2_BYTES},
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
    read_one(&dump, &record);
    assert_null(record.broken);
    const struct jit_move move = {4711, 4712, ADDR + 64, ADDR, ADDR + 64, 32, 7};
    assert_memory_equal(&record.move, &move, sizeof move);
    jit_dump_close(&dump);
    begin();
    dump_unload(&built, 5, ADDR, 32, 7);
    read_one(&dump, &record);
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
    read_one(&dump, &record);
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
    read_one(&dump, &record);
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
    read_one(&dump, &record);
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
        read_one(&dump, &record);
        assert_null(record.broken);
        assert_int_equal(record.id, ids[i]);
        assert_int_equal(record.total_size, 16 + i * 8);
        assert_int_equal(jit_record_name(ids[i]) != NULL, i < 2);
        jit_dump_close(&dump);
    }
}

/* ---- How a walk ends ---- */

/* Walk BUILT cut after SIZE bytes; the number of records goes to *COUNT. */
static enum jit_dump_end walk_cut(size_t size, size_t *count)
{
    struct jit_dump dump;
    struct jit_record record;
    enum jit_dump_end end;
    open_cut_dump(&built, size, &dump);
    struct jit_dump_walk walk = jit_dump_begin(&dump);
    for (*count = 0; (end = jit_dump_next(&walk, &record)) == JIT_DUMP_MORE; ++*count)
        assert_int_equal(record.number, *count);
    assert_int_equal(jit_dump_next(&walk, &record), end); /* and stays there */
    jit_dump_close(&dump);
    return end;
}

static enum jit_dump_end walk_all(size_t *count)
{
    return walk_cut(built.sink.size, count);
}

static void test_dump_without_records_is_whole(void **state)
{
    size_t count;
    (void)state;
    begin();
    assert_int_equal(walk_all(&count), JIT_DUMP_WHOLE);
    assert_int_equal(count, 0);
}

static void test_tail_of_zeros_was_never_used(void **state)
{
    size_t count;
    (void)state;
    for (size_t zeros = 1; zeros < 40; zeros++) {
        begin();
        dump_load(&built, 5, ADDR, "fib", "code", 1);
        sink_zeros(&built.sink, zeros);
        assert_int_equal(walk_all(&count), JIT_DUMP_WHOLE);
        assert_int_equal(count, 1);
        built.bytes[built.sink.size - 1] = 1;
        assert_int_equal(walk_all(&count), JIT_DUMP_CUT);
        assert_int_equal(count, 1);
    }
}

static void test_record_past_the_end_of_the_file_is_a_cut(void **state)
{
    size_t count;
    (void)state;
    begin();
    dump_load(&built, 5, ADDR, "fib", "code", 1);
    size_t start = built.sink.size;
    dump_load(&built, 6, ADDR, "fob", "code", 2);
    dump_set_size(&built, start, (uint32_t)(built.sink.size - start + 1));
    assert_int_equal(walk_all(&count), JIT_DUMP_CUT);
    assert_int_equal(count, 1);
    dump_set_size(&built, start, UINT32_MAX);
    assert_int_equal(walk_all(&count), JIT_DUMP_CUT);
}

static void test_record_shorter_than_its_prefix_is_a_cut(void **state)
{
    size_t count;
    (void)state;
    for (uint32_t total_size = 0; total_size < JR_PREFIX_BYTES; total_size++) {
        begin();
        dump_load(&built, 5, ADDR, "fib", "code", 1);
        size_t start = built.sink.size;
        dump_load(&built, 6, ADDR, "fob", "code", 2);
        dump_set_size(&built, start, total_size);
        assert_int_equal(walk_all(&count), JIT_DUMP_CUT);
        assert_int_equal(count, 1);
    }
}

/* Twenty records of all kinds; where each begins, and where the last one ends, goes to BOUNDARIES. */
static void build_twenty(bool big_endian, size_t boundaries[21])
{
    dump_begin(&built, big_endian, JITHEADER_BYTES);
    for (uint32_t i = 0; i < 20; i++) {
        boundaries[i] = built.sink.size;
        if (i % 5 == 0)
            dump_move(&built, i, ADDR, ADDR + 64, 32, i + 1);
        else if (i % 5 == 1)
            dump_unwinding(&built, i, 30, 20, 33);
        else if (i % 5 == 2)
            dump_unload(&built, i, ADDR, 32, i + 1);
        else if (i % 5 == 3)
            dump_plain(&built, JIT_FILLER, i + 1, i);
        else
            dump_load(&built, i, ADDR + i * 64, "a function", "some code", i + 1);
    }
    boundaries[20] = built.sink.size;
}

/* Every cut returns the whole records before it, and is told from a whole file but for one thing: what is left of a
 * record may be zeros only, as room that was never used is. */
static void sweep(bool big_endian)
{
    size_t boundaries[21];
    build_twenty(big_endian, boundaries);
    size_t whole = 0;
    for (size_t size = JITHEADER_BYTES; size <= built.sink.size; size++) {
        size_t count;
        if (whole < 20 && size >= boundaries[whole + 1])
            whole++;
        bool zeros = true;
        for (size_t at = boundaries[whole]; at < size; at++)
            zeros = zeros && built.bytes[at] == 0;
        assert_int_equal(walk_cut(size, &count), zeros ? JIT_DUMP_WHOLE : JIT_DUMP_CUT);
        assert_int_equal(count, whole);
        if (size - boundaries[whole] >= 8)
            assert_false(zeros);
    }
    assert_int_equal(whole, 20);
}

static void test_cut_at_every_byte_gives_the_whole_records(void **state)
{
    (void)state;
    sweep(false);
    sweep(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_headers_of_both_byte_orders),
        cmocka_unit_test(test_records_begin_behind_a_longer_header),
        cmocka_unit_test(test_refuses_what_is_no_jitdump),
        cmocka_unit_test(test_refuses_impossible_header_sizes),
        cmocka_unit_test(test_refuses_missing_and_irregular_files),
        cmocka_unit_test(test_addresses_are_as_wide_as_the_machine),
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
        cmocka_unit_test(test_close_filler_and_unknown_records_pass),
        cmocka_unit_test(test_dump_without_records_is_whole),
        cmocka_unit_test(test_tail_of_zeros_was_never_used),
        cmocka_unit_test(test_record_past_the_end_of_the_file_is_a_cut),
        cmocka_unit_test(test_record_shorter_than_its_prefix_is_a_cut),
        cmocka_unit_test(test_cut_at_every_byte_gives_the_whole_records),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
