/* The builder: widths of advances, large code, blocks, errors that stick, and the layout that perf
 * reads. */
#include "jitdump/cfi.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/unit/cfi_rows.h"

/* ---- Helpers ---- */

static void assert_row(const struct rows_table *table, uint64_t pc, const char *expected)
{
    char row[ROW_TEXT_BYTES];
    row_at(table, pc, row);
    assert_string_equal(row, expected);
}

static void assert_error(struct jitdump_cfi *cfi, uint64_t code_size, int error, const char *text)
{
    struct jitdump_unwind unwind;
    memset(&unwind, 0xff, sizeof unwind);
    assert_int_equal(jitdump_cfi_finish(cfi, code_size, &unwind), error);
    assert_string_equal(jitdump_cfi_error(cfi), text);
    assert_null(unwind.data);
    assert_int_equal(unwind.unwinding_size, 0);
    jitdump_cfi_free(cfi);
}

static bool contains(const struct jitdump_unwind *unwind, const char *bytes, size_t size)
{
    return memmem(unwind->data, unwind->unwinding_size, bytes, size) != NULL;
}

static int64_t signed_at(const struct jitdump_unwind *unwind, uint64_t offset)
{
    int32_t value;
    memcpy(&value, (const uint8_t *)unwind->data + offset, sizeof value);
    return value;
}

/* ---- Layout ---- */

/* Byte for byte what perf reads: .eh_frame, terminator, then the header with its table. */
static void test_bytes_of_a_small_function(void **state)
{
    static const uint8_t expected[] = {/* CIE */
                                       0x14, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1,
                                       0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0,
                                       /* FDE: code_addr is 16 + 0x20 bytes before its pc_begin */
                                       0x14, 0, 0, 0, 0x1c, 0, 0, 0, 0xd0, 0xff, 0xff, 0xff, 9, 0,
                                       0, 0, 0, 0x41, 0x0e, 16, 0x83, 2, 0, 0,
                                       /* terminator, padded */
                                       0, 0, 0, 0, 0, 0, 0, 0,
                                       /* header: .eh_frame is 0x38 + 4 bytes before here, one FDE,
                                          its code 0x48 before, it 0x20 */
                                       1, 0x1b, 3, 0x3b, 0xc4, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0xb8,
                                       0xff, 0xff, 0xff, 0xe0, 0xff, 0xff, 0xff};
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    jitdump_cfi_def_cfa_offset(cfi, 1, 16);
    jitdump_cfi_offset(cfi, 1, JITDUMP_RBX, -16);
    struct jitdump_unwind unwind = finish(cfi, 9);
    assert_int_equal(unwind.unwinding_size, sizeof expected);
    assert_int_equal(unwind.mapped_size, sizeof expected);
    assert_int_equal(unwind.eh_frame_hdr_size, 20);
    assert_memory_equal(unwind.data, expected, sizeof expected);
    jitdump_cfi_free(cfi);
}

/* The header's table, by its own rules: sorted, and each entry leads to the FDE of that code. */
static void test_the_header_finds_every_block(void **state)
{
    static const uint64_t starts[] = {400, 0, 100, 70000};
    const uint64_t code_size = 80001, section = 80008;
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    for (size_t i = 0; i < 4; i++)
        jitdump_cfi_block(cfi, starts[i], 50);
    struct jitdump_unwind unwind = finish(cfi, code_size);
    uint64_t header = unwind.unwinding_size - unwind.eh_frame_hdr_size;
    assert_int_equal(unwind.eh_frame_hdr_size, 12 + 4 * 8);
    assert_int_equal(header % 8, 0);
    assert_int_equal(header + 4 + (uint64_t)signed_at(&unwind, header + 4), 0);
    assert_int_equal(signed_at(&unwind, header + 8), 4);
    int64_t last = -1;
    for (uint64_t entry = header + 12; entry < unwind.unwinding_size; entry += 8) {
        int64_t pc = (int64_t)(section + header) + signed_at(&unwind, entry);
        int64_t fde = (int64_t)header + signed_at(&unwind, entry + 4);
        assert_true(pc > last);
        assert_int_equal((int64_t)section + fde + 8 + signed_at(&unwind, (uint64_t)fde + 8), pc);
        assert_int_equal(signed_at(&unwind, (uint64_t)fde + 12), 50);
        last = pc;
    }
    assert_int_equal(last, 70000);
    jitdump_cfi_free(cfi);
}

static void test_blocks_share_their_cie(void **state)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_AARCH64);
    (void)state;
    for (uint64_t i = 0; i < 10; i++)
        jitdump_cfi_block(cfi, i * 8, 8);
    struct jitdump_unwind unwind = finish(cfi, 80);
    assert_int_equal(unwind.unwinding_size, 24 + 10 * 24 + 8 + 12 + 10 * 8);
    jitdump_cfi_free(cfi);
}

/* ---- Directives ---- */

static void test_advances_of_every_width(void **state)
{
    static const uint64_t deltas[] = {1, 63, 64, 255, 256, 65535, 65536, 300000};
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwind;
    uint64_t at = 0;
    (void)state;
    for (size_t i = 0; i < 8; i++)
        jitdump_cfi_def_cfa_offset(cfi, at += deltas[i], (int64_t)(16 + i));
    unwind = finish(cfi, at + 100);
    struct rows_table table = rows_of(&unwind, at + 100, JITDUMP_X86_64);
    at = 0;
    for (size_t i = 0; i < 8; i++) {
        char before[32], after[32];
        snprintf(before, sizeof before, "rsp+%d ra=c-8", i ? (int)(15 + i) : 8);
        snprintf(after, sizeof after, "rsp+%d ra=c-8", (int)(16 + i));
        at += deltas[i];
        assert_row(&table, at - 1, before);
        assert_row(&table, at, after);
    }
    assert_true(
        contains(&unwind, "\x41\x0e\x10\x7f\x0e\x11\x02\x40\x0e\x12\x02\xff\x0e\x13\x03", 15));
    assert_true(contains(&unwind, "\x03\xff\xff\x0e\x15\x04\0\0\1\0\x0e\x16", 12));
    jitdump_cfi_free(cfi);
}

static void test_advances_count_instructions_on_aarch64(void **state)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_AARCH64);
    (void)state;
    jitdump_cfi_block(cfi, 100, 1000000);
    jitdump_cfi_def_cfa_offset(cfi, 100 + 63 * 4, 16);
    jitdump_cfi_def_cfa_offset(cfi, 100 + 63 * 4 + 65536 * 4, 32);
    struct jitdump_unwind unwind = finish(cfi, 1000100);
    struct rows_table table = rows_of(&unwind, 1000100, JITDUMP_AARCH64);
    assert_true(contains(&unwind, "\x7f\x0e\x10\x04\0\0\1\0\x0e\x20", 10));
    assert_row(&table, 99, "-");
    assert_row(&table, 100 + 63 * 4 - 1, "sp+0");
    assert_row(&table, 100 + 63 * 4, "sp+16");
    assert_row(&table, 100 + 63 * 4 + 65536 * 4 - 1, "sp+16");
    assert_row(&table, 1000099, "sp+32");
    assert_row(&table, 1000100, "-");
    jitdump_cfi_free(cfi);
}

static void test_large_code(void **state)
{
    const uint64_t size = 0x7f000000;
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    jitdump_cfi_def_cfa_offset(cfi, 0x7effffff, 16);
    struct jitdump_unwind unwind = finish(cfi, size);
    struct rows_table table = rows_of(&unwind, size, JITDUMP_X86_64);
    assert_row(&table, 0x7efffffe, "rsp+8 ra=c-8");
    assert_row(&table, 0x7effffff, "rsp+16 ra=c-8");
    struct jitdump_unwind none;
    assert_int_equal(jitdump_cfi_finish(cfi, 0x7ffffff0, &none), -EFBIG);
    jitdump_cfi_free(cfi);
}

static void test_numbers_at_their_limits(void **state)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    jitdump_cfi_def_cfa(cfi, 0, JITDUMP_RSP, INT32_MAX);
    jitdump_cfi_offset(cfi, 0, JITDUMP_RBX, -INT32_MAX + 7);
    jitdump_cfi_offset(cfi, 1, JITDUMP_RBX, INT32_MAX - 7);
    jitdump_cfi_def_cfa_offset(cfi, 1, -INT32_MAX + 7);
    jitdump_cfi_offset(cfi, 2, 127, 0);
    jitdump_cfi_restore(cfi, 3, 127);
    struct jitdump_unwind unwind = finish(cfi, 4);
    struct rows_table table = rows_of(&unwind, 4, JITDUMP_X86_64);
    assert_row(&table, 0, "rsp+2147483647 rbx=c-2147483640 ra=c-8");
    assert_row(&table, 1, "rsp-2147483640 rbx=c+2147483640 ra=c-8");
    assert_row(&table, 2, "rsp-2147483640 rbx=c+2147483640 ra=c-8 xmm110=c+0");
    assert_row(&table, 3, "rsp-2147483640 rbx=c+2147483640 ra=c-8");
    jitdump_cfi_free(cfi);
}

static void test_a_directive_at_the_end_is_left_out(void **state)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_cfi *plain = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    jitdump_cfi_def_cfa_offset(plain, 4, 16);
    jitdump_cfi_def_cfa_offset(cfi, 4, 16);
    jitdump_cfi_def_cfa_offset(cfi, 10, 8);
    jitdump_cfi_offset(cfi, 10, 3, -16);
    struct jitdump_unwind a = finish(cfi, 10), b = finish(plain, 10);
    assert_int_equal(a.unwinding_size, b.unwinding_size);
    assert_memory_equal(a.data, b.data, a.unwinding_size);
    a = finish(cfi, 11); /* a copy with more code behind */
    assert_true(contains(&a, "\x46\x0e\x08\x83\x02", 5));
    jitdump_cfi_free(cfi);
    jitdump_cfi_free(plain);
}

static void test_empty_blocks_are_left_out(void **state)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_cfi *plain = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    jitdump_cfi_block(cfi, 5, 0);
    jitdump_cfi_def_cfa_offset(cfi, 5, 16);
    jitdump_cfi_block(cfi, 0, 20);
    jitdump_cfi_block(cfi, 20, 0);
    jitdump_cfi_block(plain, 0, 20);
    struct jitdump_unwind a = finish(cfi, 20), b = finish(plain, 20);
    assert_int_equal(a.unwinding_size, b.unwinding_size);
    assert_memory_equal(a.data, b.data, a.unwinding_size);
    jitdump_cfi_free(cfi);
    jitdump_cfi_free(plain);
}

/* A block starts with the architecture's state, whatever the one before left behind. */
static void test_blocks_do_not_inherit(void **state)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    jitdump_cfi_block(cfi, 0, 10);
    jitdump_cfi_def_cfa(cfi, 3, JITDUMP_RBP, 64);
    jitdump_cfi_remember_state(cfi, 4);
    jitdump_cfi_block(cfi, 10, 10);
    jitdump_cfi_adjust_cfa_offset(cfi, 12, 8);
    jitdump_cfi_rel_offset(cfi, 12, JITDUMP_RBX, 0);
    struct jitdump_unwind unwind = finish(cfi, 20);
    struct rows_table table = rows_of(&unwind, 20, JITDUMP_X86_64);
    assert_row(&table, 9, "rbp+64 ra=c-8");
    assert_row(&table, 10, "rsp+8 ra=c-8");
    assert_row(&table, 12, "rsp+16 rbx=c-16 ra=c-8");
    jitdump_cfi_free(cfi);
}

static void test_a_builder_serves_again_after_reset(void **state)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwind;
    (void)state;
    for (int i = 0; i < 100; i++) {
        jitdump_cfi_reset(cfi);
        jitdump_cfi_def_cfa_offset(cfi, 1, 16 + i);
        unwind = finish(cfi, 8);
        assert_int_equal(unwind.unwinding_size, 24 + 24 + 8 + 20);
        jitdump_cfi_reset(cfi);
        jitdump_cfi_restore_state(cfi, 0);
        assert_string_not_equal(jitdump_cfi_error(cfi), "");
    }
    jitdump_cfi_free(cfi);
}

/* ---- Errors ---- */

static struct jitdump_cfi *after(void (*directive)(struct jitdump_cfi *, uint64_t, int64_t),
                                 uint64_t at, int64_t number)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    jitdump_cfi_block(cfi, 8, 32);
    jitdump_cfi_def_cfa_offset(cfi, 16, 16);
    directive(cfi, at, number);
    return cfi;
}

static void offset_of_rbx(struct jitdump_cfi *cfi, uint64_t at, int64_t number)
{
    jitdump_cfi_offset(cfi, at, JITDUMP_RBX, number);
}

static void def_cfa_rsp(struct jitdump_cfi *cfi, uint64_t at, int64_t number)
{
    jitdump_cfi_def_cfa(cfi, at, JITDUMP_RSP, number);
}

static void test_wrong_places(void **state)
{
    (void)state;
    assert_error(after(jitdump_cfi_def_cfa_offset, 7, 16), 100, -EINVAL,
                 "directive at code offset 0x7: outside of its block");
    assert_error(after(jitdump_cfi_def_cfa_offset, 41, 16), 100, -EINVAL,
                 "directive at code offset 0x29: outside of its block");
    assert_error(after(jitdump_cfi_def_cfa_offset, 15, 16), 100, -EINVAL,
                 "directive at code offset 0xf: after one with a higher offset");
    assert_error(after(jitdump_cfi_def_cfa_offset, UINT64_MAX, 16), 100, -EINVAL,
                 "directive at code offset 0xffffffffffffffff: past 2 GiB");
    assert_error(after(jitdump_cfi_def_cfa_offset, 40, 16), 39, -EINVAL,
                 "block at code offset 0x8 reaches past the code");
}

static void test_wrong_numbers(void **state)
{
    (void)state;
    assert_error(after(offset_of_rbx, 16, -12), 100, -EINVAL,
                 "directive at code offset 0x10: offset is not a multiple of 8");
    assert_error(after(offset_of_rbx, 16, INT64_MIN), 100, -EINVAL,
                 "directive at code offset 0x10: offset too large");
    assert_error(after(def_cfa_rsp, 16, -12), 100, -EINVAL,
                 "directive at code offset 0x10: offset is not a multiple of 8");
    assert_error(after(def_cfa_rsp, 16, INT64_MAX), 100, -EINVAL,
                 "directive at code offset 0x10: offset too large");
    assert_error(after(jitdump_cfi_def_cfa_offset, 16, (int64_t)1 << 31), 100, -EINVAL,
                 "directive at code offset 0x10: offset too large");
    assert_error(after(jitdump_cfi_adjust_cfa_offset, 16, INT64_MIN), 100, -EINVAL,
                 "directive at code offset 0x10: offset too large");
    assert_error(after(jitdump_cfi_adjust_cfa_offset, 16, INT32_MAX), 100, -EINVAL,
                 "directive at code offset 0x10: offset too large");
}

static void test_wrong_states(void **state)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    for (int i = 0; i < 33; i++)
        jitdump_cfi_remember_state(cfi, 0);
    assert_error(cfi, 8, -EINVAL, "directive at code offset 0x0: remember_state 33 deep");
    cfi = jitdump_cfi_new(JITDUMP_X86_64);
    jitdump_cfi_remember_state(cfi, 0);
    jitdump_cfi_restore_state(cfi, 1);
    jitdump_cfi_restore_state(cfi, 2);
    assert_error(cfi, 8, -EINVAL,
                 "directive at code offset 0x2: restore_state without a remember_state");
    cfi = jitdump_cfi_new(JITDUMP_X86_64);
    jitdump_cfi_block(cfi, 0, 4);
    jitdump_cfi_remember_state(cfi, 0);
    jitdump_cfi_block(cfi, 4, 4);
    jitdump_cfi_restore_state(cfi, 4);
    assert_error(cfi, 8, -EINVAL,
                 "directive at code offset 0x4: restore_state without a remember_state");
}

static void test_wrong_escapes(void **state)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    jitdump_cfi_escape(cfi, 3, "\x0f\x05\x01", 3);
    assert_error(cfi, 8, -EINVAL,
                 "directive at code offset 0x3: a call frame instruction reaches past its entry");
    cfi = jitdump_cfi_new(JITDUMP_X86_64);
    jitdump_cfi_escape(cfi, 3, "\x3f", 1);
    assert_error(cfi, 8, -EINVAL, "directive at code offset 0x3: unknown call frame instruction");
    cfi = jitdump_cfi_new(JITDUMP_X86_64);
    jitdump_cfi_escape(cfi, 3, NULL, 1);
    assert_error(cfi, 8, -EINVAL, "directive at code offset 0x3: size is set, and bytes is NULL");
}

/* What follows, and where a later directive stands, would be wrong. */
static void test_escapes_that_advance_or_remember(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
    } advances[] = {{"\x41", 1},     {"\x40", 1},         {"\x0e\x10\x7f", 3},        {"\x02\1", 2},
                    {"\x03\1\0", 3}, {"\x04\1\0\0\0", 5}, {"\x1d\1\0\0\0\0\0\0\0", 9}};
    (void)state;
    for (size_t i = 0; i < sizeof advances / sizeof *advances; i++) {
        struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
        jitdump_cfi_escape(cfi, 3, advances[i].bytes, advances[i].size);
        assert_error(cfi, 8, -EINVAL,
                     "directive at code offset 0x3: an escape that advances the location");
    }
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    jitdump_cfi_escape(cfi, 3, "\x0a\x0a\x0b", 3);
    assert_error(cfi, 8, -EINVAL,
                 "directive at code offset 0x3: an escape that leaves a state remembered");
    cfi = jitdump_cfi_new(JITDUMP_X86_64);
    jitdump_cfi_escape(cfi, 3, "\x0a\x0e\x10\x0b\x2e\x40", 6);
    finish(cfi, 8);
    jitdump_cfi_free(cfi);
}

static void test_wrong_blocks(void **state)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    jitdump_cfi_block(cfi, 30, 10);
    jitdump_cfi_block(cfi, 0, 31);
    assert_error(cfi, 100, -EINVAL, "block at code offset 0x1e overlaps one before it");
    cfi = jitdump_cfi_new(JITDUMP_X86_64);
    jitdump_cfi_def_cfa_offset(cfi, 1, 16);
    jitdump_cfi_block(cfi, 50, 10);
    assert_error(cfi, 100, -EINVAL, "block at code offset 0x32 overlaps one before it");
    cfi = jitdump_cfi_new(JITDUMP_X86_64);
    jitdump_cfi_block(cfi, 90, 11);
    assert_error(cfi, 100, -EINVAL, "block at code offset 0x5a reaches past the code");
    cfi = jitdump_cfi_new(JITDUMP_X86_64);
    jitdump_cfi_block(cfi, UINT64_MAX, 2);
    assert_error(cfi, 100, -EINVAL, "block at code offset 0xffffffffffffffff reaches past 2 GiB");
    cfi = jitdump_cfi_new(JITDUMP_X86_64);
    jitdump_cfi_def_cfa_offset(cfi, 101, 16);
    assert_error(cfi, 100, -EINVAL, "block at code offset 0x0 reaches past the code");
    for (uint64_t start = 1; start < 4; start++) {
        char text[64];
        snprintf(text, sizeof text, "block at code offset 0x%u: not at an instruction",
                 (unsigned)start);
        cfi = jitdump_cfi_new(JITDUMP_AARCH64);
        jitdump_cfi_block(cfi, start, 8);
        assert_error(cfi, 100, -EINVAL, text);
    }
}

/* The last byte of a picture is at 2 GiB at most, for every size of the code. */
static void test_code_and_tables_of_2_gib(void **state)
{
    (void)state;
    for (uint64_t size = INT32_MAX - UINT64_C(200); size <= INT32_MAX; size++) {
        struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
        struct jitdump_unwind unwind;
        int error = jitdump_cfi_finish(cfi, size, &unwind);
        assert_true(error == 0 || error == -EFBIG);
        assert_true(error != 0 ||
                    (size + 7) / 8 * 8 + unwind.unwinding_size <= (uint64_t)INT32_MAX);
        assert_true(error == 0 || unwind.unwinding_size == 0);
        if (size >= INT32_MAX - UINT64_C(40))
            assert_string_equal(jitdump_cfi_error(cfi),
                                "code and tables together are larger than 2 GiB");
        jitdump_cfi_free(cfi);
    }
}

static void test_nothing_to_describe(void **state)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    jitdump_cfi_block(cfi, 0, 0);
    assert_error(cfi, 10, -EINVAL, "no code to describe");
    assert_error(jitdump_cfi_new(JITDUMP_X86_64), 0, -EINVAL, "no code to describe");
    assert_error(jitdump_cfi_new((enum jitdump_arch)7), 10, -EINVAL, "no such architecture");
    assert_error(jitdump_cfi_new(JITDUMP_X86_64), UINT64_MAX, -EFBIG,
                 "the code is larger than 2 GiB");
}

static void test_the_first_error_stays(void **state)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    jitdump_cfi_restore_state(cfi, 2);
    jitdump_cfi_def_cfa_offset(cfi, 1, 16);
    jitdump_cfi_block(cfi, 0, 1);
    assert_int_equal(jitdump_cfi_import(cfi, "", 0, 0, 0, 10), -EINVAL);
    assert_error(cfi, 10, -EINVAL,
                 "directive at code offset 0x2: restore_state without a remember_state");
}

static void test_after_finish_only_finish(void **state)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    finish(cfi, 10);
    finish(cfi, 20);
    jitdump_cfi_def_cfa_offset(cfi, 1, 16);
    assert_error(cfi, 10, -EINVAL, "more to describe after jitdump_cfi_finish");
}

/* For AddressSanitizer: a malloc that can't be satisfied shall say so, as malloc does. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void test_out_of_memory(void **state)
{
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX / 4};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
        errno = 4711;
        jitdump_cfi_escape(cfi, 1, "", sizes[i]);
        assert_int_equal(errno, 4711);
        assert_error(cfi, 8, -ENOMEM, "out of memory");
    }
}

/* What an unchecked jitdump_cfi_new leads to when memory is out. */
static void test_no_builder(void **state)
{
    const struct jitdump_frame frame = {.kind = JITDUMP_FRAME_LEAF};
    struct jitdump_unwind unwind;
    (void)state;
    jitdump_cfi_reset(NULL);
    jitdump_cfi_block(NULL, 0, 1);
    jitdump_cfi_frame(NULL, &frame);
    jitdump_cfi_def_cfa(NULL, 0, 0, 0);
    jitdump_cfi_def_cfa_offset(NULL, 0, 0);
    jitdump_cfi_def_cfa_register(NULL, 0, 0);
    jitdump_cfi_adjust_cfa_offset(NULL, 0, 0);
    jitdump_cfi_offset(NULL, 0, 0, 0);
    jitdump_cfi_rel_offset(NULL, 0, 0, 0);
    jitdump_cfi_val_offset(NULL, 0, 0, 0);
    jitdump_cfi_register(NULL, 0, 0, 0);
    jitdump_cfi_same_value(NULL, 0, 0);
    jitdump_cfi_undefined(NULL, 0, 0);
    jitdump_cfi_restore(NULL, 0, 0);
    jitdump_cfi_remember_state(NULL, 0);
    jitdump_cfi_restore_state(NULL, 0);
    jitdump_cfi_escape(NULL, 0, "", 0);
    assert_int_equal(jitdump_cfi_import(NULL, "", 0, 0, 0, 1), -ENOMEM);
    assert_error(NULL, 8, -ENOMEM, "out of memory");
    assert_int_equal(jitdump_cfi_finish(NULL, 8, &unwind), -ENOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_of_a_small_function),
        cmocka_unit_test(test_the_header_finds_every_block),
        cmocka_unit_test(test_blocks_share_their_cie),
        cmocka_unit_test(test_advances_of_every_width),
        cmocka_unit_test(test_advances_count_instructions_on_aarch64),
        cmocka_unit_test(test_large_code),
        cmocka_unit_test(test_numbers_at_their_limits),
        cmocka_unit_test(test_a_directive_at_the_end_is_left_out),
        cmocka_unit_test(test_empty_blocks_are_left_out),
        cmocka_unit_test(test_blocks_do_not_inherit),
        cmocka_unit_test(test_a_builder_serves_again_after_reset),
        cmocka_unit_test(test_wrong_places),
        cmocka_unit_test(test_wrong_numbers),
        cmocka_unit_test(test_wrong_states),
        cmocka_unit_test(test_wrong_escapes),
        cmocka_unit_test(test_escapes_that_advance_or_remember),
        cmocka_unit_test(test_code_and_tables_of_2_gib),
        cmocka_unit_test(test_wrong_blocks),
        cmocka_unit_test(test_nothing_to_describe),
        cmocka_unit_test(test_the_first_error_stays),
        cmocka_unit_test(test_after_finish_only_finish),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_no_builder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
