/* What a compiler in one pass needs: functions begun and ended in one buffer, registers by their
 * numbers in instructions, and which slots can not be. */
#include "jitdump/cfi.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- Beginning and ending ---- */

static const struct jitdump_frame pushes = {
    .kind = JITDUMP_FRAME_POINTER, JITDUMP_SAVED(JITDUMP_RBX, JITDUMP_R12), .stack_bytes = 32};

static void assert_same(const struct jitdump_unwind *a, const struct jitdump_unwind *b)
{
    assert_int_equal(a->unwinding_size, b->unwinding_size);
    assert_int_equal(a->eh_frame_hdr_size, b->eh_frame_hdr_size);
    assert_int_equal(a->mapped_size, b->mapped_size);
    assert_memory_equal(a->data, b->data, a->unwinding_size);
}

/* The tables of FRAME, whose one epilogue is at END - 12, alone and by finish. */
static void alone(struct jitdump_cfi *cfi, uint64_t size, struct jitdump_unwind *unwind)
{
    struct jitdump_frame frame = pushes;
    const uint64_t epilogue = size - 12;
    frame.epilogues = &epilogue;
    frame.epilogue_count = 1;
    jitdump_cfi_frame(cfi, &frame);
    assert_int_equal(jitdump_cfi_finish(cfi, size, unwind), 0);
}

enum { FUNCTIONS = 300 };

/* Many functions of one buffer, in one pass: their tables stay, and are those of each alone. */
static void test_functions_of_a_buffer_one_at_a_time(void **state)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwinds[FUNCTIONS];
    uint64_t at = UINT64_C(0x300000000); /* a buffer may be larger than any function */
    (void)state;
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < FUNCTIONS; i++) {
            struct jitdump_frame frame = pushes;
            uint64_t start = at, size = 40 + i * 7, epilogue = start + size - 12;
            frame.prologue = i % 2 ? start : 0;
            frame.epilogues = &epilogue;
            frame.epilogue_count = 1;
            jitdump_cfi_begin(cfi, start);
            jitdump_cfi_frame(cfi, &frame);
            at += size;
            assert_int_equal(jitdump_cfi_end(cfi, at, &unwinds[i]), 0);
            at += 5;
        }
        for (unsigned i = 0; i < FUNCTIONS; i++) {
            struct jitdump_cfi *other = jitdump_cfi_new(JITDUMP_X86_64);
            struct jitdump_unwind expected;
            alone(other, 40 + i * 7, &expected);
            assert_same(&unwinds[i], &expected);
            jitdump_cfi_free(other);
        }
        jitdump_cfi_reset(cfi);
        at = 0;
    }
    jitdump_cfi_free(cfi);
}

static void test_directives_and_blocks_count_from_the_buffer(void **state)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_AARCH64);
    struct jitdump_cfi *other = jitdump_cfi_new(JITDUMP_AARCH64);
    struct jitdump_unwind unwind, expected;
    const struct jitdump_frame cold = {
        .kind = JITDUMP_FRAME_POINTER, .flags = JITDUMP_FRAME_ENTERED, .stack_bytes = 16};
    (void)state;
    jitdump_cfi_begin(cfi, 4096);
    jitdump_cfi_block(cfi, 4096, 16);
    jitdump_cfi_def_cfa_offset(cfi, 4100, 32);
    jitdump_cfi_offset(cfi, 4104, JITDUMP_X19, -16);
    jitdump_cfi_block(cfi, 4160, 8);
    jitdump_cfi_frame(cfi, &cold);
    assert_int_equal(jitdump_cfi_end(cfi, 4168, &unwind), 0);
    jitdump_cfi_block(other, 0, 16);
    jitdump_cfi_def_cfa_offset(other, 4, 32);
    jitdump_cfi_offset(other, 8, JITDUMP_X19, -16);
    jitdump_cfi_block(other, 64, 8);
    jitdump_cfi_frame(other, &cold);
    assert_int_equal(jitdump_cfi_finish(other, 72, &expected), 0);
    assert_same(&unwind, &expected);
    jitdump_cfi_free(cfi);
    jitdump_cfi_free(other);
}

static void assert_end_refused(struct jitdump_cfi *cfi, uint64_t at, const char *text)
{
    struct jitdump_unwind unwind = {.unwinding_size = 1};
    assert_int_equal(jitdump_cfi_end(cfi, at, &unwind), -EINVAL);
    assert_int_equal(unwind.unwinding_size, 0);
    if (!strstr(jitdump_cfi_error(cfi), text))
        fail_msg("%s", jitdump_cfi_error(cfi));
}

static void test_what_is_refused(void **state)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwind;
    (void)state;
    assert_end_refused(cfi, 10, "nothing begun");
    jitdump_cfi_begin(cfi, 100);
    assert_end_refused(cfi, 99, "before the function");
    jitdump_cfi_begin(cfi, 100);
    jitdump_cfi_def_cfa_offset(cfi, 99, 16);
    assert_end_refused(cfi, 110, "offset 0x63: before the function");
    jitdump_cfi_begin(cfi, 100);
    jitdump_cfi_block(cfi, 50, 60);
    assert_end_refused(cfi, 110, "before the function");
    jitdump_cfi_begin(cfi, 100);
    jitdump_cfi_frame(cfi, &(struct jitdump_frame){.kind = JITDUMP_FRAME_STACK, .prologue = 4});
    assert_end_refused(cfi, 110, "before the function");
    jitdump_cfi_begin(cfi, 100);
    jitdump_cfi_def_cfa_offset(cfi, 111, 16);
    assert_end_refused(cfi, 110, "reaches past the code");
    jitdump_cfi_begin(cfi, 100);
    assert_end_refused(cfi, 100, "no code to describe");
    /* An error is the function's own: what is begun next is sound, and ends once. */
    jitdump_cfi_begin(cfi, 100);
    assert_int_equal(jitdump_cfi_end(cfi, 110, &unwind), 0);
    assert_end_refused(cfi, 110, "nothing begun");
    jitdump_cfi_begin(NULL, 1);
    assert_int_equal(jitdump_cfi_end(NULL, 2, &unwind), -ENOMEM);
    jitdump_cfi_free(cfi);
    cfi = jitdump_cfi_new((enum jitdump_arch)1);
    jitdump_cfi_begin(cfi, 0);
    assert_end_refused(cfi, 10, "no such architecture");
    jitdump_cfi_free(cfi);
}

/* A compiler that gives up in the middle begins the next function. */
static void test_what_was_begun_and_not_ended_is_dropped(void **state)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_cfi *other = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind first, copy, unwind, expected;
    uint8_t bytes[512];
    (void)state;
    jitdump_cfi_begin(cfi, 0);
    assert_int_equal(jitdump_cfi_end(cfi, 20, &first), 0);
    assert_true(first.unwinding_size <= sizeof bytes);
    memcpy(bytes, first.data, first.unwinding_size);
    copy = first;
    copy.data = bytes;
    jitdump_cfi_begin(cfi, 20);
    jitdump_cfi_def_cfa_offset(cfi, 30, 16);
    jitdump_cfi_def_cfa_offset(cfi, 29, 16); /* wrong */
    jitdump_cfi_begin(cfi, 40);
    jitdump_cfi_def_cfa_offset(cfi, 41, 24);
    assert_int_equal(jitdump_cfi_end(cfi, 60, &unwind), 0);
    jitdump_cfi_def_cfa_offset(other, 1, 24);
    assert_int_equal(jitdump_cfi_finish(other, 20, &expected), 0);
    assert_same(&unwind, &expected);
    assert_same(&first, &copy);
    jitdump_cfi_free(cfi);
    jitdump_cfi_free(other);
}

/* ---- Slots ---- */

static void assert_slots_refused(enum jitdump_arch arch, struct jitdump_frame frame,
                                 const char *text)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(arch);
    struct jitdump_unwind unwind;
    jitdump_cfi_frame(cfi, &frame);
    assert_int_equal(jitdump_cfi_finish(cfi, 100, &unwind), -EINVAL);
    if (!strstr(jitdump_cfi_error(cfi), text))
        fail_msg("%s: %s", text, jitdump_cfi_error(cfi));
    assert_int_equal(jitdump_cfi_prologue_bytes(arch, &frame), -EINVAL);
    assert_int_equal(jitdump_cfi_epilogue_bytes(arch, &frame), -EINVAL);
    jitdump_cfi_free(cfi);
}

static void test_slots_that_can_not_be(void **state)
{
    const struct {
        enum jitdump_arch arch;
        struct jitdump_frame frame;
        const char *text;
    } wrong[] = {
        {JITDUMP_X86_64,
         {.kind = JITDUMP_FRAME_STACK, .stack_bytes = 16, .slot_count = 1},
         "slots is NULL"},
        {JITDUMP_X86_64, {JITDUMP_SLOTS({JITDUMP_RBX, 0})}, "leaf with slots"},
        {JITDUMP_X86_64,
         {.kind = JITDUMP_FRAME_STACK, .stack_bytes = 16, JITDUMP_SLOTS({JITDUMP_RBX, 16})},
         "outside of stack_bytes"},
        {JITDUMP_X86_64,
         {.kind = JITDUMP_FRAME_STACK, .stack_bytes = 16, JITDUMP_SLOTS({JITDUMP_RBX, -8})},
         "outside of stack_bytes"},
        {JITDUMP_X86_64,
         {.kind = JITDUMP_FRAME_POINTER, .stack_bytes = 16, JITDUMP_SLOTS({JITDUMP_RBX, 0})},
         "outside of stack_bytes"},
        {JITDUMP_X86_64,
         {.kind = JITDUMP_FRAME_POINTER, .stack_bytes = 16, JITDUMP_SLOTS({JITDUMP_RBX, -24})},
         "outside of stack_bytes"},
        {JITDUMP_X86_64,
         {.kind = JITDUMP_FRAME_STACK, .stack_bytes = 24, JITDUMP_SLOTS({JITDUMP_RBX, 4})},
         "multiple of 8"},
        {JITDUMP_X86_64,
         {.kind = JITDUMP_FRAME_STACK,
          .stack_bytes = 24,
          JITDUMP_SLOTS({JITDUMP_RBX, 8}, {JITDUMP_R12, 8})},
         "overlap"},
        {JITDUMP_X86_64,
         {.kind = JITDUMP_FRAME_STACK,
          .stack_bytes = 24,
          JITDUMP_SLOTS({JITDUMP_RBX, 8}, {JITDUMP_RBX, 16})},
         "one register"},
        {JITDUMP_X86_64,
         {.kind = JITDUMP_FRAME_STACK,
          JITDUMP_SAVED(JITDUMP_RBX),
          .stack_bytes = 24,
          JITDUMP_SLOTS({JITDUMP_RBX, 8})},
         "saved twice"},
        {JITDUMP_X86_64,
         {.kind = JITDUMP_FRAME_STACK, .stack_bytes = 24, JITDUMP_SLOTS({JITDUMP_RSP, 8})},
         "can't be in one"},
        {JITDUMP_X86_64,
         {.kind = JITDUMP_FRAME_POINTER, .stack_bytes = 24, JITDUMP_SLOTS({JITDUMP_RBP, -8})},
         "can't be in one"},
        {JITDUMP_X86_64,
         {.kind = JITDUMP_FRAME_STACK, .stack_bytes = 24, JITDUMP_SLOTS({300, 8})},
         "can't be in one"},
        {JITDUMP_X86_64,
         {.kind = JITDUMP_FRAME_STACK, .flags = JITDUMP_FRAME_RED_ZONE, .stack_bytes = 24},
         "without a frame pointer"},
        {JITDUMP_X86_64,
         {.kind = JITDUMP_FRAME_POINTER,
          .flags = JITDUMP_FRAME_RED_ZONE,
          JITDUMP_SAVED(JITDUMP_RBX),
          .stack_bytes = 24},
         "pushed registers"},
        {JITDUMP_X86_64,
         {.kind = JITDUMP_FRAME_POINTER,
          .flags = JITDUMP_FRAME_RED_ZONE | JITDUMP_FRAME_DYNAMIC,
          .stack_bytes = 24},
         "which it includes"},
        {JITDUMP_X86_64, /* 24 - 8 for rbp */
         {.kind = JITDUMP_FRAME_POINTER,
          .flags = JITDUMP_FRAME_RED_ZONE,
          .stack_bytes = 24,
          JITDUMP_SLOTS({JITDUMP_RBX, -24})},
         "outside of stack_bytes"},
        {JITDUMP_X86_64,
         {.kind = JITDUMP_FRAME_POINTER, .flags = JITDUMP_FRAME_MOV_POP},
         "without JITDUMP_FRAME_DYNAMIC"},
        {JITDUMP_RISCV64,
         {.kind = JITDUMP_FRAME_POINTER, .flags = JITDUMP_FRAME_DYNAMIC | JITDUMP_FRAME_MOV_POP},
         "is for x86-64"},
        {JITDUMP_AARCH64,
         {.kind = JITDUMP_FRAME_POINTER, .flags = JITDUMP_FRAME_DYNAMIC | JITDUMP_FRAME_MOV_POP},
         "is for x86-64"},
        {JITDUMP_RISCV64, /* no store reaches it */
         {.kind = JITDUMP_FRAME_STACK,
          .stack_bytes = 4096,
          JITDUMP_SLOTS({JITDUMP_RISCV_S1, 2048})},
         "outside of stack_bytes"},
        {JITDUMP_RISCV64,
         {.kind = JITDUMP_FRAME_POINTER,
          .stack_bytes = 4096,
          JITDUMP_SLOTS({JITDUMP_RISCV_S1, -2056})},
         "outside of stack_bytes"},
        {JITDUMP_RISCV64,
         {.kind = JITDUMP_FRAME_POINTER, .stack_bytes = 16, JITDUMP_SLOTS({JITDUMP_RISCV_S1, -8})},
         "outside of stack_bytes"},
        {JITDUMP_RISCV64,
         {.kind = JITDUMP_FRAME_POINTER, .stack_bytes = 16, JITDUMP_SLOTS({JITDUMP_RISCV_RA, -24})},
         "can't be in one"},
        {JITDUMP_RISCV64,
         {.kind = JITDUMP_FRAME_POINTER, .flags = JITDUMP_FRAME_RED_ZONE, .stack_bytes = 16},
         "is for x86-64"},
        {JITDUMP_AARCH64,
         {.kind = JITDUMP_FRAME_STACK, .stack_bytes = 32, JITDUMP_SLOTS({JITDUMP_SP, 8})},
         "can't be in one"},
        {JITDUMP_AARCH64,
         {.kind = JITDUMP_FRAME_POINTER, .stack_bytes = 32, JITDUMP_SLOTS({JITDUMP_X30, -8})},
         "can't be in one"},
        {JITDUMP_AARCH64,
         {.kind = JITDUMP_FRAME_POINTER, .flags = JITDUMP_FRAME_RED_ZONE},
         "is for x86-64"},
    };
    struct jitdump_slot many[JITDUMP_FRAME_SLOTS_MAX + 1] = {{0}};
    const struct jitdump_frame too_many = {.kind = JITDUMP_FRAME_STACK,
                                           .stack_bytes = 4096,
                                           .slots = many,
                                           .slot_count = JITDUMP_FRAME_SLOTS_MAX + 1};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_slots_refused(wrong[i].arch, wrong[i].frame, wrong[i].text);
    assert_slots_refused(JITDUMP_X86_64, too_many, "more slots");
}

/* ---- Registers ---- */

static void test_numbers_of_registers(void **state)
{
    /* In the order of the instructions' encoding: Intel's manual, volume 2, table 2-2. */
    static const int x86_64[] = {JITDUMP_RAX, JITDUMP_RCX, JITDUMP_RDX, JITDUMP_RBX,
                                 JITDUMP_RSP, JITDUMP_RBP, JITDUMP_RSI, JITDUMP_RDI,
                                 JITDUMP_R8,  JITDUMP_R9,  JITDUMP_R10, JITDUMP_R11,
                                 JITDUMP_R12, JITDUMP_R13, JITDUMP_R14, JITDUMP_R15};
    (void)state;
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(jitdump_dwarf_register(JITDUMP_X86_64, i), x86_64[i]);
    assert_int_equal(jitdump_dwarf_register(JITDUMP_X86_64, 16), -EINVAL);
    assert_int_equal(jitdump_dwarf_register(JITDUMP_X86_64, 0 | JITDUMP_VECTOR), 17);
    assert_int_equal(jitdump_dwarf_register(JITDUMP_X86_64, 15 | JITDUMP_VECTOR), 32);
    assert_int_equal(jitdump_dwarf_register(JITDUMP_X86_64, 16 | JITDUMP_VECTOR), 67);
    assert_int_equal(jitdump_dwarf_register(JITDUMP_X86_64, 31 | JITDUMP_VECTOR), 82);
    assert_int_equal(jitdump_dwarf_register(JITDUMP_X86_64, 32 | JITDUMP_VECTOR), -EINVAL);
    for (unsigned i = 0; i < 32; i++) {
        assert_int_equal(jitdump_dwarf_register(JITDUMP_AARCH64, i), i);
        assert_int_equal(jitdump_dwarf_register(JITDUMP_AARCH64, i | JITDUMP_VECTOR),
                         JITDUMP_D0 + (int)i);
    }
    for (unsigned i = 0; i < 32; i++) {
        assert_int_equal(jitdump_dwarf_register(JITDUMP_RISCV64, i), i);
        assert_int_equal(jitdump_dwarf_register(JITDUMP_RISCV64, i | JITDUMP_VECTOR),
                         JITDUMP_RISCV_F0 + (int)i);
    }
    assert_int_equal(jitdump_dwarf_register(JITDUMP_RISCV64, 32), -EINVAL);
    assert_int_equal(jitdump_dwarf_register(JITDUMP_AARCH64, 32), -EINVAL);
    assert_int_equal(jitdump_dwarf_register(JITDUMP_AARCH64, 0x1000), -EINVAL);
    assert_int_equal(jitdump_dwarf_register((enum jitdump_arch)1, 0), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions_of_a_buffer_one_at_a_time),
        cmocka_unit_test(test_directives_and_blocks_count_from_the_buffer),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_what_was_begun_and_not_ended_is_dropped),
        cmocka_unit_test(test_slots_that_can_not_be),
        cmocka_unit_test(test_numbers_of_registers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
