/* The jitdump reader: headers, how a walk ends, and files cut at any byte. */
#include "tests/unit/dump_builder.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/inotify.h>

enum { ADDR = 0x10000 };

static struct dump_builder built;

static void begin(void)
{
    dump_begin(&built, false, JITHEADER_BYTES);
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
    read_only_record(&built, &dump, &record);
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
    assert_refused(0, "nothing of it was written");
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

/* Who opens a watchdog starts it, and a path from the profile may lead there. */
static void test_opens_no_irregular_files(void **state)
{
    char cause[256], event[sizeof(struct inotify_event) + NAME_MAX + 1];
    struct jit_dump dump;
    (void)state;
    assert_int_equal(mkfifo(scratch_file, 0600), 0);
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(watch >= 0 && inotify_add_watch(watch, scratch_file, IN_OPEN) >= 0);
    assert_int_equal(jit_dump_open(&dump, scratch_file, cause, sizeof cause), -1);
    ssize_t opened = read(watch, event, sizeof event);
    close(watch);
    assert_int_equal(unlink(scratch_file), 0); /* a test that follows would wait in it */
    assert_true(opened < 0);
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

/* To look at each byte of it would take minutes. */
static void test_hole_at_the_end_is_not_read(void **state)
{
    char cause[256];
    struct jit_dump dump;
    struct jit_record record;
    (void)state;
    begin();
    dump_load(&built, 5, ADDR, "fib", "code", 1);
    write_scratch(built.bytes, built.sink.size);
    assert_int_equal(truncate(scratch_file, (off_t)1 << 38), 0);
    alarm(60);
    assert_int_equal(jit_dump_open(&dump, scratch_file, cause, sizeof cause), 0);
    struct jit_dump_walk walk = jit_dump_begin(&dump);
    assert_int_equal(jit_dump_next(&walk, &record), JIT_DUMP_MORE);
    assert_memory_equal(record.load.code, "code", 4);
    assert_int_equal(jit_dump_next(&walk, &record), JIT_DUMP_WHOLE);
    alarm(0);
    jit_dump_close(&dump);
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

/* Twenty records of all kinds; where each begins, and where the last one ends, goes to BOUNDARIES.
 */
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

/* Every cut returns the whole records before it, and is told from a whole file but for one thing:
 * what is left of a record may be zeros only, as room that was never used is. */
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
        cmocka_unit_test(test_opens_no_irregular_files),
        cmocka_unit_test(test_addresses_are_as_wide_as_the_machine),
        cmocka_unit_test(test_dump_without_records_is_whole),
        cmocka_unit_test(test_tail_of_zeros_was_never_used),
        cmocka_unit_test(test_hole_at_the_end_is_not_read),
        cmocka_unit_test(test_record_past_the_end_of_the_file_is_a_cut),
        cmocka_unit_test(test_record_shorter_than_its_prefix_is_a_cut),
        cmocka_unit_test(test_cut_at_every_byte_gives_the_whole_records),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
