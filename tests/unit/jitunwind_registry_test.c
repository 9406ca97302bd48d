/* libjitunwind's registry: what may be added where, what is found, and by whom at once. */
#include "jitdump/format/byte_sink.h"
#include "jitunwind/arena_list.h"
#include "tests/unit/jitunwind_test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

static void test_options(void **state)
{
    struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
    struct jitunwind *arena;
    (void)state;
    assert_int_equal(jitunwind_open(&arena, NULL), -EINVAL);
    assert_int_equal(jitunwind_open(&arena, &options), -EINVAL); /* empty */
    assert_null(arena);
    options.start = UINT64_MAX - 10;
    options.bytes = 100;
    assert_int_equal(jitunwind_open(&arena, &options), -EINVAL);
    options.start = ARENA_START;
    options.bytes = UINT64_C(1) << 32;
    assert_int_equal(jitunwind_open(&arena, &options), -EINVAL);
    options.bytes = ARENA_BYTES;
    options.flags = 1u << 31;
    assert_int_equal(jitunwind_open(&arena, &options), -E2BIG);
    options.flags = 0;
    options.size = 0;
    assert_int_equal(jitunwind_open(&arena, &options), -EINVAL);
    options.size = 5000;
    assert_int_equal(jitunwind_open(&arena, &options), -EINVAL);
}

static void test_a_larger_struct(void **state)
{
    struct {
        struct jitunwind_options options;
        uint64_t later;
    } larger = {.options = JITUNWIND_OPTIONS_INIT};
    struct jitunwind *arena;
    (void)state;
    larger.options.size = sizeof larger;
    larger.options.start = ARENA_START;
    larger.options.bytes = ARENA_BYTES;
    larger.later = 1;
    assert_int_equal(jitunwind_open(&arena, &larger.options), -E2BIG);
    larger.later = 0;
    assert_int_equal(jitunwind_open(&arena, &larger.options), 0);
    jitunwind_close(arena);
}

static int32_t cfa_offset_at(const struct jitunwind *arena, uint64_t addr)
{
    const struct table_function *function = ju_function_table_find(&arena->table, addr);
    assert_non_null(function);
    const struct frame_rule *rule = ju_function_table_rule(&arena->table, function, addr);
    return rule ? rule->cfa_offset : -1;
}

/* Code may begin anywhere that its machine allows; libjitdump's tables belong behind it. */
static void test_tables_of_code_anywhere(void **state)
{
    enum { BYTES = 64, APART = 128, UNIT = MACHINE_CFA_OFFSET ? 1 : 4 };
    struct jitunwind *arena = arena_open();
    (void)state;
    for (uint64_t i = 0; i < 16; i++) {
        uint64_t addr = ARENA_START + i * APART + i * UNIT;
        assert_int_equal(add_framed(arena, addr, BYTES, "f"), 0);
        assert_int_equal(cfa_offset_at(arena, addr), MACHINE_CFA_OFFSET);
        assert_int_equal(cfa_offset_at(arena, addr + UNIT), 16);
        assert_int_equal(cfa_offset_at(arena, addr + BYTES - 8 + UNIT), MACHINE_CFA_OFFSET);
    }
    jitunwind_close(arena);
}

static void test_null_arena(void **state)
{
    (void)state;
    assert_int_equal(add_plain(NULL, 1, 1, "f"), 0);
    assert_int_equal(jitunwind_remove(NULL, 1), 0);
    jitunwind_close(NULL);
}

static void test_arenas_do_not_overlap(void **state)
{
    struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
    struct jitunwind *first = arena_open(), *second;
    (void)state;
    options.start = ARENA_START + ARENA_BYTES - 1;
    options.bytes = 1;
    assert_int_equal(jitunwind_open(&second, &options), -EEXIST);
    options.start = ARENA_START - 1;
    options.bytes = 2;
    assert_int_equal(jitunwind_open(&second, &options), -EEXIST);
    options.bytes = 1;
    assert_int_equal(jitunwind_open(&second, &options), 0);
    assert_int_equal(add_plain(second, ARENA_START - 1, 1, "tiny"), 0);
    assert_int_equal(add_plain(first, ARENA_START, 1, "first"), 0);
    expect_name(ARENA_START - 1, "tiny");
    expect_name(ARENA_START, "first");
    jitunwind_close(first);
    expect_name(ARENA_START, NULL);
    expect_name(ARENA_START - 1, "tiny");
    jitunwind_close(second);
    expect_name(ARENA_START - 1, NULL);
}

static void test_ranges(void **state)
{
    struct jitunwind *arena = arena_open();
    (void)state;
    assert_int_equal(add_plain(arena, ARENA_START, 0, "f"), -EINVAL);
    assert_int_equal(add_plain(arena, ARENA_START - 1, 2, "f"), -EINVAL);
    assert_int_equal(add_plain(arena, ARENA_START + ARENA_BYTES - 1, 2, "f"), -EINVAL);
    assert_int_equal(add_plain(arena, ARENA_START + ARENA_BYTES, 1, "f"), -EINVAL);
    assert_int_equal(add_plain(arena, ARENA_START, UINT64_MAX, "f"), -EINVAL);
    assert_int_equal(add_plain(arena, ARENA_START + ARENA_BYTES - 1, 1, "last"), 0);
    expect_name(ARENA_START + ARENA_BYTES - 1, "last");
    expect_name(ARENA_START + ARENA_BYTES, NULL);
    jitunwind_close(arena);
}

/* Small ones in one granule, one that ends in it, one that covers many. */
static void test_neighbours(void **state)
{
    struct jitunwind *arena = arena_open();
    const uint64_t at = ARENA_START + 640;
    (void)state;
    assert_int_equal(add_plain(arena, at, 1000, "large"), 0);
    assert_int_equal(add_plain(arena, at + 1000, 3, "a"), 0);
    assert_int_equal(add_plain(arena, at + 1003, 2, "b"), 0);
    assert_int_equal(add_plain(arena, at + 1006, 100, "c"), 0);
    assert_int_equal(add_plain(arena, at + 999, 2, "x"), -EEXIST);
    assert_int_equal(add_plain(arena, at - 10, 11, "x"), -EEXIST);
    assert_int_equal(add_plain(arena, at - 10, 2000, "x"), -EEXIST);
    assert_int_equal(add_plain(arena, at + 500, 1, "x"), -EEXIST);
    for (uint64_t i = 0; i < 1110; i++)
        expect_name(at + i, i < 1000   ? "large"
                            : i < 1003 ? "a"
                            : i < 1005 ? "b"
                            : i < 1006 ? NULL
                            : i < 1106 ? "c"
                                       : NULL);
    assert_int_equal(jitunwind_remove(arena, at + 1), -ENOENT);
    assert_int_equal(jitunwind_remove(arena, at + 1000), 0);
    assert_int_equal(jitunwind_remove(arena, at + 1000), -ENOENT);
    expect_name(at + 1001, NULL);
    expect_name(at + 1003, "b");
    assert_int_equal(jitunwind_remove(arena, at), 0);
    expect_name(at + 999, NULL);
    assert_int_equal(add_plain(arena, at + 500, 503, "new"), 0);
    expect_name(at + 1002, "new");
    jitunwind_close(arena);
}

static void test_names(void **state)
{
    struct jitunwind *arena = arena_open();
    char name[4];
    uint64_t offset;
    (void)state;
    assert_int_equal(add_plain(arena, ARENA_START, 16, "abcdef"), 0);
    assert_int_equal(add_plain(arena, ARENA_START + 16, 16, NULL), 0);
    assert_int_equal(jitunwind_name(ARENA_START + 5, name, sizeof name, &offset), 0);
    assert_string_equal(name, "abc");
    assert_int_equal(offset, 5);
    assert_int_equal(jitunwind_name(ARENA_START, NULL, 0, NULL), 0);
    assert_int_equal(jitunwind_name(ARENA_START + 16, name, sizeof name, &offset), -ENOENT);
    jitunwind_close(arena);
}

/* The memory of what was removed is used again: far more functions than the arena has room for. */
static void test_reuse(void **state)
{
    struct jitunwind *arena = arena_open();
    char name[32];
    (void)state;
    for (unsigned i = 0; i < 200000; i++) {
        uint64_t at = ARENA_START + i * 64 % ARENA_BYTES;
        if (i * 64 >= ARENA_BYTES)
            assert_int_equal(jitunwind_remove(arena, at), 0);
        snprintf(name, sizeof name, "f%u", i);
        assert_int_equal(add_framed(arena, at, 64, name), 0);
        expect_name(at + 63, name);
    }
    jitunwind_close(arena);
}

static void test_full(void **state)
{
    struct jitunwind *arena = arena_at(ARENA_START, 4096);
    int error = 0;
    (void)state;
    for (unsigned i = 0; i < 4096 && !error; i++)
        error = add_plain(arena, ARENA_START + i, 1, "f");
    assert_int_equal(error, -ENOSPC);
    expect_name(ARENA_START, "f");
    jitunwind_close(arena);
}

/* A valid table, cut at each byte and with each byte changed: what is refused adds nothing, what is
 * taken is taken whole. */
static void test_damaged_tables(void **state)
{
    struct jitunwind *arena = arena_open();
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_HOST_ARCH);
    struct jitdump_unwind unwind;
    const uint64_t epilogue = 50;
    const struct jitdump_frame frame = {
        .kind = JITDUMP_FRAME_POINTER, .epilogues = &epilogue, .epilogue_count = 1};
    (void)state;
    jitdump_cfi_frame(cfi, &frame);
    assert_int_equal(jitdump_cfi_finish(cfi, 64, &unwind), 0);
    const size_t size = unwind.unwinding_size - unwind.eh_frame_hdr_size;
    unsigned refused = 0;
    for (size_t i = 0; i < size * 257; i++) {
        size_t kept = i < size ? i : size; /* so that reading past it is seen */
        uint8_t *bytes = malloc(kept ? kept : 1);
        assert_non_null(bytes);
        memcpy(bytes, unwind.data, kept);
        if (i >= size)
            bytes[(i - size) / 256] = (uint8_t)i;
        struct jitunwind_code code = JITUNWIND_CODE_INIT;
        code.addr = ARENA_START;
        code.bytes = 64;
        code.eh_frame = bytes;
        code.eh_frame_bytes = kept;
        int error = jitunwind_add(arena, &code);
        assert_true(error == 0 || error == -EINVAL);
        assert_int_equal(jitunwind_remove(arena, ARENA_START), error ? -ENOENT : 0);
        refused += error != 0;
        free(bytes);
    }
    assert_true(refused > size);
    jitdump_cfi_free(cfi);
    jitunwind_close(arena);
}

/* ---- Threads ---- */

enum { READERS = 2, ROUNDS = 4000, PLACES = 16, PLACE_BYTES = 96 };

static struct {
    atomic_bool stop;
    _Atomic uint64_t found;
} shared;

/* The function at a place is called by the place's number, whatever its generation. */
static void *read_names(void *nothing)
{
    char name[64];
    uint64_t offset;
    for (unsigned i = 0; !shared.stop; i++) {
        unsigned place = i % PLACES, at = place * PLACE_BYTES + i % PLACE_BYTES, number, generation;
        if (jitunwind_name(ARENA_START + at, name, sizeof name, &offset) != 0)
            continue;
        int fields = sscanf(name, "f%u generation %u", &number, &generation);
        if (fields != 2 || number != place || offset >= PLACE_BYTES)
            fail_msg("%s+%u at place %u", name, (unsigned)offset, place);
        shared.found++;
    }
    return nothing;
}

static void test_readers_and_a_writer(void **state)
{
    struct jitunwind *arena = arena_open();
    pthread_t threads[READERS];
    char name[64];
    (void)state;
    shared.stop = false;
    for (unsigned i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_names, NULL), 0);
    for (unsigned i = 0; i < ROUNDS * PLACES || shared.found < 100; i++) {
        unsigned place = i % PLACES;
        snprintf(name, sizeof name, "f%u generation %u", place, i);
        if (i >= PLACES)
            assert_int_equal(jitunwind_remove(arena, ARENA_START + place * PLACE_BYTES), 0);
        int error;
        /* A reader that waits for a processor keeps what was removed meanwhile from being used
         * again. */
        while ((error = add_plain(arena, ARENA_START + place * PLACE_BYTES, PLACE_BYTES - i % 8,
                                  name)) == -ENOSPC)
            sched_yield();
        assert_int_equal(error, 0);
    }
    jitunwind_close(arena);
    arena = arena_at(ARENA_START, 64); /* while they read */
    jitunwind_close(arena);
    shared.stop = true;
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    jitunwind_close(arena_open()); /* frees what they were reading */
}

/* ---- Two entries for one function ---- */

/* A CIE, or an FDE of the one at 0: the CFA is the stack pointer and CFA_OFFSET from BEGIN up to
 * END of the code at ARENA_START. */
static void put_cie(struct byte_sink *sink)
{
    sink_u32(sink, 20);
    sink_u32(sink, 0);
    sink_bytes(sink, "\1zR\0\1\x78", 6);
    sink_u8(sink, MACHINE_RETURN);
    sink_bytes(sink, "\1\0", 2); /* absolute pointers */
    sink_zeros(sink, 7);
}

static void put_entry(struct byte_sink *sink, uint64_t begin, uint64_t end, uint8_t cfa_offset)
{
    sink_u32(sink, 28);
    sink_u32(sink, (uint32_t)sink->size);
    sink_u64(sink, ARENA_START + begin);
    sink_u64(sink, end - begin);
    sink_u8(sink, 0);
    sink_u8(sink, 0x0c); /* DW_CFA_def_cfa */
    sink_u8(sink, MACHINE_SP);
    sink_u8(sink, cfa_offset);
    sink_zeros(sink, 4);
}

/* Add a function of 64 bytes with two entries, whose rows say 16 and 32, into ARENA. */
static int add_with_entries(struct jitunwind *arena, const uint64_t first[2],
                            const uint64_t second[2])
{
    uint8_t bytes[128];
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    put_cie(&sink);
    put_entry(&sink, first[0], first[1], 16);
    put_entry(&sink, second[0], second[1], 32);
    assert_false(sink.overflow);
    struct jitunwind_code code = JITUNWIND_CODE_INIT;
    code.addr = ARENA_START;
    code.bytes = 64;
    code.eh_frame = bytes;
    code.eh_frame_bytes = sink.size;
    return jitunwind_add(arena, &code);
}

static void expect_refused(uint64_t begin, uint64_t end, uint64_t next_begin, uint64_t next_end)
{
    const uint64_t first[] = {begin, end}, second[] = {next_begin, next_end};
    struct jitunwind *arena = arena_open();
    assert_int_equal(add_with_entries(arena, first, second), -EINVAL);
    assert_null(ju_function_table_find(&arena->table, ARENA_START));
    jitunwind_close(arena);
}

static void test_entries_that_overlap_by_a_byte_are_refused(void **state)
{
    (void)state;
    expect_refused(0, 32, 31, 64);
    expect_refused(0, 64, 0, 64);
    expect_refused(0, 64, 63, 64);
}

static void test_entries_that_overlap_and_are_not_in_order_are_refused(void **state)
{
    (void)state;
    expect_refused(31, 64, 0, 32);
    expect_refused(63, 64, 0, 64);
}

/* The CFA's offset for each byte of the function; of what no entry tells of there is no rule. */
static void expect_offsets(const uint64_t first[2], const uint64_t second[2])
{
    struct jitunwind *arena = arena_open();
    assert_int_equal(add_with_entries(arena, first, second), 0);
    for (uint64_t at = 0; at < 64; at++) {
        const struct table_function *function =
            ju_function_table_find(&arena->table, ARENA_START + at);
        assert_non_null(function);
        const struct frame_rule *rule =
            ju_function_table_rule(&arena->table, function, ARENA_START + at);
        bool in_first = at >= first[0] && at < first[1];
        bool in_second = at >= second[0] && at < second[1];
        assert_int_equal(rule ? rule->cfa_offset : 0, in_first ? 16 : in_second ? 32 : 0);
    }
    jitunwind_close(arena);
}

static void test_entries_that_touch(void **state)
{
    (void)state;
    expect_offsets((const uint64_t[]){0, 32}, (const uint64_t[]){32, 64});
}

static void test_bytes_before_between_and_behind_entries_have_no_rule(void **state)
{
    (void)state;
    expect_offsets((const uint64_t[]){1, 32}, (const uint64_t[]){33, 63});
}

static void test_entries_in_descending_order(void **state)
{
    (void)state;
    expect_offsets((const uint64_t[]){32, 64}, (const uint64_t[]){0, 32});
    expect_offsets((const uint64_t[]){33, 63}, (const uint64_t[]){1, 32});
}

/* As many as a shuffle of the function's bytes has, each with an offset of its own. */
static void test_entries_in_any_order(void **state)
{
    enum { ENTRIES = 64, STEP = 37 };
    struct jitunwind *arena = arena_open();
    uint8_t bytes[24 + ENTRIES * 32];
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    struct jitunwind_code code = JITUNWIND_CODE_INIT;
    (void)state;
    put_cie(&sink);
    for (uint64_t i = 0; i < ENTRIES; i++) {
        const uint64_t at = i * STEP % ENTRIES;
        put_entry(&sink, at, at + 1, (uint8_t)(at + 1));
    }
    assert_false(sink.overflow);
    code.addr = ARENA_START;
    code.bytes = ENTRIES;
    code.eh_frame = bytes;
    code.eh_frame_bytes = sink.size;
    assert_int_equal(jitunwind_add(arena, &code), 0);
    for (uint64_t at = 0; at < ENTRIES; at++)
        assert_int_equal(cfa_offset_at(arena, ARENA_START + at), at + 1);
    jitunwind_close(arena);
}

/* An entry of the neighbour's, as in a section for more than one function. */
static void test_entries_of_code_beside_the_function_are_left_out(void **state)
{
    (void)state;
    expect_offsets((const uint64_t[]){0, 64}, (const uint64_t[]){64, 96});
    expect_offsets((const uint64_t[]){64, 96}, (const uint64_t[]){0, 64});
}

/* Add a function of 64 bytes with the table in SINK, which is refused. */
static void expect_table_refused(const struct byte_sink *sink)
{
    struct jitunwind *arena = arena_open();
    struct jitunwind_code code = JITUNWIND_CODE_INIT;
    code.addr = ARENA_START;
    code.bytes = 64;
    code.eh_frame = sink->data;
    code.eh_frame_bytes = sink->size;
    assert_int_equal(jitunwind_add(arena, &code), -EINVAL);
    expect_name(ARENA_START, NULL);
    jitunwind_close(arena);
}

/* A row goes back to one that nobody has put aside. */
static void test_an_entry_that_can_not_be_run_is_refused(void **state)
{
    uint8_t bytes[64];
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    (void)state;
    put_cie(&sink);
    put_entry(&sink, 0, 64, 16);
    bytes[sink.size - 4] = 0x41; /* DW_CFA_advance_loc 1 */
    bytes[sink.size - 3] = 0x0b; /* DW_CFA_restore_state */
    expect_table_refused(&sink);
}

static void test_an_entry_that_is_cut_behind_a_sound_one_is_refused(void **state)
{
    uint8_t bytes[128];
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    (void)state;
    put_cie(&sink);
    put_entry(&sink, 0, 32, 16);
    put_entry(&sink, 32, 64, 32);
    sink.size--;
    expect_table_refused(&sink);
}

static void test_an_entry_that_is_cut_behind_unordered_ones_is_refused(void **state)
{
    uint8_t bytes[128];
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    (void)state;
    put_cie(&sink);
    put_entry(&sink, 32, 48, 16);
    put_entry(&sink, 0, 32, 32);
    put_entry(&sink, 48, 64, 32);
    sink.size--;
    expect_table_refused(&sink);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_a_larger_struct),
        cmocka_unit_test(test_tables_of_code_anywhere),
        cmocka_unit_test(test_null_arena),
        cmocka_unit_test(test_arenas_do_not_overlap),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_damaged_tables),
        cmocka_unit_test(test_readers_and_a_writer),
        cmocka_unit_test(test_entries_that_overlap_by_a_byte_are_refused),
        cmocka_unit_test(test_entries_that_overlap_and_are_not_in_order_are_refused),
        cmocka_unit_test(test_entries_in_descending_order),
        cmocka_unit_test(test_entries_in_any_order),
        cmocka_unit_test(test_entries_that_touch),
        cmocka_unit_test(test_bytes_before_between_and_behind_entries_have_no_rule),
        cmocka_unit_test(test_entries_of_code_beside_the_function_are_left_out),
        cmocka_unit_test(test_an_entry_that_can_not_be_run_is_refused),
        cmocka_unit_test(test_an_entry_that_is_cut_behind_a_sound_one_is_refused),
        cmocka_unit_test(test_an_entry_that_is_cut_behind_unordered_ones_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
