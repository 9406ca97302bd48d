/* The calls that are inline in the headers, as who looks them up by name finds them: with the
 * structs of version 0.1. */
#define JITDUMP_NO_INLINE
#define PERFMAP_NO_INLINE
#include "jitdump/cfi.h"
#include "jitdump/trampoline.h"
#include "perfmap/perfmap.h"
#include "tests/unit/jitdump_test.h"

static void test_frames(void **state)
{
    const enum jitdump_arch arch = JITDUMP_X86_64;
    const size_t newer = offsetof(struct jitdump_frame, slots);
    struct jitdump_frame frame = {.kind = JITDUMP_FRAME_POINTER, .stack_bytes = 16};
    struct jitdump_cfi *cfi = jitdump_cfi_new(arch);
    (void)state;
    const int prologue = jitdump_cfi_prologue_bytes_sized(arch, &frame, sizeof frame);
    const int epilogue = jitdump_cfi_epilogue_bytes_sized(arch, &frame, sizeof frame);
    memset((char *)&frame + newer, 0xff, sizeof frame - newer); /* nobody's */
    jitdump_cfi_frame(cfi, &frame);
    assert_string_equal(jitdump_cfi_error(cfi), "");
    assert_int_equal(jitdump_cfi_prologue_bytes(arch, &frame), prologue);
    assert_int_equal(jitdump_cfi_epilogue_bytes(arch, &frame), epilogue);
    jitdump_cfi_frame_sized(cfi, &frame, sizeof frame);
    assert_string_not_equal(jitdump_cfi_error(cfi), "");
    jitdump_cfi_free(cfi);
}

static void test_tables(void **state)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind finished = {0}, ended = {0};
    (void)state;
    assert_int_equal(jitdump_cfi_finish(cfi, 16, &finished), 0);
    assert_true(finished.unwinding_size > finished.eh_frame_hdr_size);
    assert_int_equal(finished.mapped_size, finished.unwinding_size);
    jitdump_cfi_reset(cfi);
    jitdump_cfi_begin(cfi, 0);
    assert_int_equal(jitdump_cfi_end(cfi, 16, &ended), 0);
    assert_int_equal(ended.unwinding_size, finished.unwinding_size);
    jitdump_cfi_free(cfi);
}

/* Off, as the inline ones are. */
static void test_null(void **state)
{
    struct jitdump_trampoline_code code = {.name = ""};
    uint64_t index = 0;
    (void)state;
    assert_int_equal(jitdump_add_code(NULL, NULL, &index), 0);
    assert_true(index == JITDUMP_NO_CODE);
    assert_int_equal(jitdump_move_code(NULL, 0, 0x1000, 0x2000, 16), 0);
    assert_int_equal(jitdump_move_pieces(NULL, 0, NULL, 1), 0);
    assert_int_equal(jitdump_unload_code(NULL, 0, 0x1000, 16), 0);
    assert_int_equal(jitdump_poll(NULL, NULL, NULL), 0);
    assert_int_equal(jitdump_span_end(NULL, 0, NULL), 0);
    assert_int_equal(jitdump_trampoline_describe(NULL, NULL, &code), -ENOENT);
    assert_null(code.name);
    assert_int_equal(perfmap_add(NULL, 0, 0, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
