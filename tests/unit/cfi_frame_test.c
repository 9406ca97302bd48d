/* Compact frames: the row of every instruction, and the same bytes as directives. */
#include "jitdump/cfi.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/unit/cfi_cases.h"
#include "tests/unit/cfi_rows.h"

/* ---- Helpers ---- */

static void assert_rows(struct jitdump_cfi *cfi, enum jitdump_arch arch, uint64_t code_size,
                        const char *expected)
{
    struct jitdump_unwind unwind = finish(cfi, code_size);
    struct rows_table table = rows_of(&unwind, code_size, arch);
    char *rows = rows_text(&table, 0, code_size);
    assert_string_equal(rows, expected);
    free(rows);
}

static void assert_refused(enum jitdump_arch arch, struct jitdump_frame frame, const char *text)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(arch);
    struct jitdump_unwind unwind;
    jitdump_cfi_frame(cfi, &frame);
    assert_int_equal(jitdump_cfi_finish(cfi, 100, &unwind), -EINVAL);
    assert_non_null(strstr(jitdump_cfi_error(cfi), text));
    jitdump_cfi_free(cfi);
}

static struct jitdump_cfi *describe(const struct cfi_case *test)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(test->arch);
    for (const struct cfi_piece *piece = test->pieces; piece < test->pieces + 3 && piece->size;
         piece++) {
        if (!test->whole)
            jitdump_cfi_block(cfi, piece->start, piece->size);
        jitdump_cfi_frame(cfi, &piece->frame);
    }
    return cfi;
}

/* ---- Tests ---- */

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < CFI_CASES; i++) {
        struct jitdump_cfi *cfi = describe(&cfi_cases[i]);
        print_message("# %s\n", cfi_cases[i].name);
        assert_rows(cfi, cfi_cases[i].arch, cfi_cases[i].code_size, cfi_cases[i].rows);
        jitdump_cfi_free(cfi);
    }
}

/* Whether the epilogue ends the code is known early with a block and late without: no difference.
 */
static void test_a_block_of_the_whole_code_is_the_default(void **state)
{
    (void)state;
    for (size_t i = 0; i < CFI_CASES; i++) {
        const struct cfi_case *test = &cfi_cases[i];
        if (!test->whole)
            continue;
        struct jitdump_cfi *implied = describe(test), *given = jitdump_cfi_new(test->arch);
        jitdump_cfi_block(given, 0, test->code_size);
        jitdump_cfi_frame(given, &test->pieces[0].frame);
        struct jitdump_unwind a = finish(implied, test->code_size);
        struct jitdump_unwind b = finish(given, test->code_size);
        assert_int_equal(a.unwinding_size, b.unwinding_size);
        assert_memory_equal(a.data, b.data, a.unwinding_size);
        jitdump_cfi_free(implied);
        jitdump_cfi_free(given);
    }
}

static void assert_same_bytes(struct jitdump_cfi *cfi, struct jitdump_cfi *by_hand,
                              uint64_t code_size)
{
    struct jitdump_unwind a = finish(cfi, code_size), b = finish(by_hand, code_size);
    assert_int_equal(a.unwinding_size, b.unwinding_size);
    assert_int_equal(a.eh_frame_hdr_size, b.eh_frame_hdr_size);
    assert_memory_equal(a.data, b.data, a.unwinding_size);
    jitdump_cfi_free(cfi);
    jitdump_cfi_free(by_hand);
}

static void test_a_pointer_frame_is_its_directives(void **state)
{
    const struct jitdump_frame frame = {.kind = JITDUMP_FRAME_POINTER,
                                        JITDUMP_SAVED(JITDUMP_RBX, JITDUMP_R12),
                                        .stack_bytes = 32,
                                        JITDUMP_EPILOGUES(15, 26)};
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_cfi *by_hand = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    jitdump_cfi_frame(cfi, &frame);
    jitdump_cfi_def_cfa_offset(by_hand, 1, 16); /* push rbp */
    jitdump_cfi_offset(by_hand, 1, JITDUMP_RBP, -16);
    jitdump_cfi_def_cfa_register(by_hand, 4, JITDUMP_RBP); /* mov rbp, rsp */
    jitdump_cfi_offset(by_hand, 5, JITDUMP_RBX, -24);      /* push rbx */
    jitdump_cfi_offset(by_hand, 7, JITDUMP_R12, -32);      /* push r12 */
    for (uint64_t epilogue = 15; epilogue <= 26; epilogue += 11) {
        jitdump_cfi_remember_state(by_hand, epilogue);
        jitdump_cfi_restore(by_hand, epilogue + 6, JITDUMP_R12); /* add rsp, 32; pop r12 */
        jitdump_cfi_restore(by_hand, epilogue + 7, JITDUMP_RBX); /* pop rbx */
        jitdump_cfi_def_cfa(by_hand, epilogue + 8, JITDUMP_RSP, 8);
        jitdump_cfi_restore(by_hand, epilogue + 8, JITDUMP_RBP); /* pop rbp */
        jitdump_cfi_restore_state(by_hand, epilogue + 9);        /* ret */
    }
    assert_same_bytes(cfi, by_hand, 35);
}

static void test_a_stack_frame_is_its_directives(void **state)
{
    const struct jitdump_frame hot = {.kind = JITDUMP_FRAME_STACK,
                                      JITDUMP_SAVED(JITDUMP_X30, JITDUMP_X19, JITDUMP_D8),
                                      .stack_bytes = 64,
                                      JITDUMP_EPILOGUES(20)};
    struct jitdump_frame cold = hot;
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_AARCH64);
    struct jitdump_cfi *by_hand = jitdump_cfi_new(JITDUMP_AARCH64);
    (void)state;
    cold.flags = JITDUMP_FRAME_ENTERED;
    cold.epilogue_count = 0;
    jitdump_cfi_block(cfi, 0, 36);
    jitdump_cfi_frame(cfi, &hot);
    jitdump_cfi_block(cfi, 64, 16);
    jitdump_cfi_frame(cfi, &cold);

    jitdump_cfi_block(by_hand, 0, 36);
    jitdump_cfi_def_cfa_offset(by_hand, 4, 32); /* stp x30, x19, [sp, #-32]! */
    jitdump_cfi_offset(by_hand, 4, JITDUMP_X30, -32);
    jitdump_cfi_rel_offset(by_hand, 4, JITDUMP_X19, 8);
    jitdump_cfi_offset(by_hand, 8, JITDUMP_D8, -16); /* str d8, [sp, #16] */
    jitdump_cfi_adjust_cfa_offset(by_hand, 12, 64);  /* sub sp, sp, #64 */
    jitdump_cfi_remember_state(by_hand, 20);         /* the epilogue begins */
    jitdump_cfi_adjust_cfa_offset(by_hand, 24, -64); /* add sp, sp, #64 */
    jitdump_cfi_restore(by_hand, 28, JITDUMP_D8);    /* ldr d8, [sp, #16] */
    jitdump_cfi_def_cfa_offset(by_hand, 32, 0);      /* ldp x30, x19, [sp], #32 */
    jitdump_cfi_restore(by_hand, 32, JITDUMP_X30);
    jitdump_cfi_restore(by_hand, 32, JITDUMP_X19);
    jitdump_cfi_block(by_hand, 64, 16);
    jitdump_cfi_def_cfa_offset(by_hand, 64, 96);
    jitdump_cfi_offset(by_hand, 64, JITDUMP_X30, -32);
    jitdump_cfi_offset(by_hand, 64, JITDUMP_X19, -24);
    jitdump_cfi_offset(by_hand, 64, JITDUMP_D8, -16);
    assert_same_bytes(cfi, by_hand, 80);
}

static void test_directives_go_on_behind_a_frame(void **state)
{
    struct jitdump_frame frame = {
        .kind = JITDUMP_FRAME_STACK, .stack_bytes = 8, JITDUMP_EPILOGUES(4)};
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    jitdump_cfi_frame(cfi, &frame);
    jitdump_cfi_def_cfa_offset(cfi, 9, 8);
    assert_rows(cfi, JITDUMP_X86_64, 12, "0 rsp+8 ra=c-8\n4 rsp+16 ra=c-8\n8 rsp+8 ra=c-8\n");
    jitdump_cfi_free(cfi);
}

static void test_sizes(void **state)
{
    const struct jitdump_frame pointer = {.kind = JITDUMP_FRAME_POINTER,
                                          .flags = JITDUMP_FRAME_LANDING_PAD,
                                          JITDUMP_SAVED(JITDUMP_RBX, JITDUMP_R12),
                                          .stack_bytes = 128};
    const struct jitdump_frame leaf = {.kind = JITDUMP_FRAME_LEAF};
    struct jitdump_frame entered = pointer, arm = {.kind = JITDUMP_FRAME_POINTER,
                                                   JITDUMP_SAVED(JITDUMP_X19, JITDUMP_X20),
                                                   .stack_bytes = 0x2010};
    (void)state;
    entered.flags |= JITDUMP_FRAME_ENTERED;
    assert_int_equal(jitdump_cfi_prologue_bytes(JITDUMP_X86_64, &pointer), 4 + 1 + 3 + 1 + 2 + 7);
    assert_int_equal(jitdump_cfi_epilogue_bytes(JITDUMP_X86_64, &pointer), 7 + 2 + 1 + 1);
    assert_int_equal(jitdump_cfi_prologue_bytes(JITDUMP_X86_64, &entered), 0);
    assert_int_equal(jitdump_cfi_prologue_bytes(JITDUMP_X86_64, &leaf), 0);
    assert_int_equal(jitdump_cfi_epilogue_bytes(JITDUMP_AARCH64, &leaf), 0);
    assert_int_equal(jitdump_cfi_prologue_bytes(JITDUMP_AARCH64, &arm), 4 * 5);
    assert_int_equal(jitdump_cfi_epilogue_bytes(JITDUMP_AARCH64, &arm), 4 * 4);
    arm.flags = JITDUMP_FRAME_DYNAMIC;
    assert_int_equal(jitdump_cfi_epilogue_bytes(JITDUMP_AARCH64, &arm), 4 * 3);
    entered.flags = 0;
    entered.stack_bytes = 127;
    assert_int_equal(jitdump_cfi_prologue_bytes(JITDUMP_X86_64, &entered), 1 + 3 + 1 + 2 + 4);
    arm.stack_bytes = 8;
    assert_int_equal(jitdump_cfi_prologue_bytes(JITDUMP_AARCH64, &arm), -EINVAL);
    assert_int_equal(jitdump_cfi_epilogue_bytes((enum jitdump_arch)3, &leaf), -EINVAL);
    const struct jitdump_frame riscv = {.kind = JITDUMP_FRAME_POINTER,
                                        JITDUMP_SAVED(JITDUMP_RISCV_S1, JITDUMP_RISCV_FS11),
                                        .stack_bytes = 2048};
    assert_int_equal(jitdump_cfi_prologue_bytes(JITDUMP_RISCV64, &riscv), 4 * (1 + 2 + 2 + 1 + 3));
    assert_int_equal(jitdump_cfi_epilogue_bytes(JITDUMP_RISCV64, &riscv), 4 * (3 + 2 + 2 + 1));
}

static void test_frames_that_can_not_be(void **state)
{
    const enum jitdump_arch x86 = JITDUMP_X86_64, arm = JITDUMP_AARCH64;
    const enum jitdump_frame_kind pointer = JITDUMP_FRAME_POINTER, stack = JITDUMP_FRAME_STACK;
    (void)state;
    assert_refused(x86, (struct jitdump_frame){.kind = (enum jitdump_frame_kind)9}, "kind");
    assert_refused(x86, (struct jitdump_frame){.flags = 0x100}, "flag");
    assert_refused(x86, (struct jitdump_frame){.kind = stack, .saved_count = 21}, "more saved");
    assert_refused(x86, (struct jitdump_frame){.stack_bytes = 8}, "leaf");
    assert_refused(x86, (struct jitdump_frame){JITDUMP_SAVED(JITDUMP_RBX)}, "leaf");
    assert_refused(x86, (struct jitdump_frame){.kind = stack, .flags = JITDUMP_FRAME_DYNAMIC},
                   "without a frame pointer");
    assert_refused(x86, (struct jitdump_frame){.kind = stack, JITDUMP_SAVED(3, 4, 3)}, "twice");
    assert_refused(x86, (struct jitdump_frame){.kind = stack, JITDUMP_SAVED(JITDUMP_RSP)}, "saved");
    assert_refused(x86, (struct jitdump_frame){.kind = stack, JITDUMP_SAVED(JITDUMP_RIP)}, "saved");
    assert_refused(x86, (struct jitdump_frame){.kind = pointer, JITDUMP_SAVED(JITDUMP_RBP)},
                   "saved");
    assert_refused(x86, (struct jitdump_frame){.kind = stack, .stack_bytes = 0x80000000},
                   "31 bits");
    assert_refused(arm, (struct jitdump_frame){.kind = pointer, JITDUMP_SAVED(JITDUMP_X30)},
                   "saved");
    assert_refused(arm, (struct jitdump_frame){.kind = stack, JITDUMP_SAVED(JITDUMP_SP)}, "saved");
    assert_refused(arm, (struct jitdump_frame){.kind = stack, JITDUMP_SAVED(40)}, "saved");
    assert_refused(arm, (struct jitdump_frame){.kind = stack, JITDUMP_SAVED(96)}, "saved");
    assert_refused(arm, (struct jitdump_frame){.kind = stack, .stack_bytes = 24}, "of 16");
    assert_refused(arm, (struct jitdump_frame){.kind = stack, .stack_bytes = 1 << 24}, "24 bits");
    assert_refused(arm, (struct jitdump_frame){.flags = JITDUMP_FRAME_IMM32}, "x86-64");
}

static void test_riscv64_frames_that_can_not_be(void **state)
{
    const enum jitdump_arch arch = JITDUMP_RISCV64;
    static const uint8_t never[] = {0, JITDUMP_RISCV_SP, 3, 4, 64};
    (void)state;
    for (size_t i = 0; i < sizeof never; i++)
        assert_refused(arch,
                       (struct jitdump_frame){.kind = JITDUMP_FRAME_STACK, JITDUMP_SAVED(never[i])},
                       "saved");
    assert_refused(
        arch,
        (struct jitdump_frame){.kind = JITDUMP_FRAME_POINTER, JITDUMP_SAVED(JITDUMP_RISCV_RA)},
        "saved");
    assert_refused(
        arch,
        (struct jitdump_frame){.kind = JITDUMP_FRAME_POINTER, JITDUMP_SAVED(JITDUMP_RISCV_S0)},
        "saved");
    assert_refused(arch, (struct jitdump_frame){.kind = JITDUMP_FRAME_STACK, .stack_bytes = 24},
                   "of 16");
    assert_refused(arch,
                   (struct jitdump_frame){.kind = JITDUMP_FRAME_STACK, .stack_bytes = 0x7ffffff0},
                   "31 bits");
    assert_refused(arch, (struct jitdump_frame){.flags = JITDUMP_FRAME_IMM32}, "x86-64");
}

/* What runs them is tests/producers/riscv64_frames.c; this is for blocks that begin inside. */
static void test_a_riscv64_frame_that_was_entered(void **state)
{
    const struct jitdump_frame pointer = {.kind = JITDUMP_FRAME_POINTER,
                                          .flags = JITDUMP_FRAME_ENTERED,
                                          JITDUMP_SAVED(JITDUMP_RISCV_S1),
                                          .stack_bytes = 32};
    const struct jitdump_frame stack = {.kind = JITDUMP_FRAME_STACK,
                                        .flags = JITDUMP_FRAME_ENTERED,
                                        JITDUMP_SAVED(JITDUMP_RISCV_RA, JITDUMP_RISCV_FS0),
                                        .stack_bytes = 32};
    struct jitdump_cfi *short_form = jitdump_cfi_new(JITDUMP_RISCV64);
    struct jitdump_cfi *by_hand = jitdump_cfi_new(JITDUMP_RISCV64);
    (void)state;
    jitdump_cfi_block(short_form, 0, 8);
    jitdump_cfi_frame(short_form, &pointer);
    jitdump_cfi_block(short_form, 8, 6);
    jitdump_cfi_frame(short_form, &stack);
    jitdump_cfi_block(by_hand, 0, 8);
    jitdump_cfi_def_cfa(by_hand, 0, JITDUMP_RISCV_S0, 0);
    jitdump_cfi_offset(by_hand, 0, JITDUMP_RISCV_RA, -8);
    jitdump_cfi_offset(by_hand, 0, JITDUMP_RISCV_S0, -16);
    jitdump_cfi_offset(by_hand, 0, JITDUMP_RISCV_S1, -24);
    jitdump_cfi_block(by_hand, 8, 6);
    jitdump_cfi_def_cfa_offset(by_hand, 8, 48);
    jitdump_cfi_offset(by_hand, 8, JITDUMP_RISCV_RA, -8);
    jitdump_cfi_offset(by_hand, 8, JITDUMP_RISCV_FS0, -16);
    struct jitdump_unwind one = finish(short_form, 14), other = finish(by_hand, 14);
    assert_int_equal(one.unwinding_size, other.unwinding_size);
    assert_memory_equal(one.data, other.data, one.unwinding_size);
    jitdump_cfi_reset(by_hand);
    jitdump_cfi_def_cfa_offset(by_hand, 3, 16);
    assert_non_null(strstr(jitdump_cfi_error(by_hand), "not at an instruction"));
    jitdump_cfi_free(short_form);
    jitdump_cfi_free(by_hand);
}

static void test_epilogues_in_wrong_places(void **state)
{
    const struct jitdump_frame frame = {.kind = JITDUMP_FRAME_POINTER};
    const uint64_t early[] = {3}, overlapping[] = {20, 21}, late[] = {98}, odd[] = {34},
                   behind[] = {128}, far[] = {UINT64_MAX - 1};
    struct jitdump_frame f = frame;
    (void)state;
    f.epilogue_count = 1;
    f.epilogues = early;
    assert_refused(JITDUMP_X86_64, f,
                   "epilogue at code offset 0x3: after one with a higher offset");
    f.epilogues = late; /* pop rbp; the code ends; no ret */
    f.epilogue_count = 1;
    f.stack_bytes = 8;
    assert_refused(JITDUMP_X86_64, f, "epilogue at code offset 0x62 reaches past the code");
    f.epilogues = behind; /* all of it */
    assert_refused(JITDUMP_X86_64, f, "epilogue at code offset 0x80 reaches past the code");
    f.epilogues = far;
    assert_refused(JITDUMP_X86_64, f, "epilogue at code offset 0xfffffffffffffffe: past 2 GiB");
    f.epilogues = overlapping;
    f.epilogue_count = 2;
    assert_refused(JITDUMP_X86_64, f, "0x15: after");
    f.stack_bytes = 0;
    f.epilogues = odd;
    f.epilogue_count = 1;
    assert_refused(JITDUMP_AARCH64, f, "0x22: not at an instruction");
}

/* Offsets to which lengths are added: none may come out as a small one. */
static void test_prologues_past_the_end(void **state)
{
    const struct jitdump_frame frames[] = {
        {.kind = JITDUMP_FRAME_POINTER},
        {.kind = JITDUMP_FRAME_POINTER, .flags = JITDUMP_FRAME_LANDING_PAD},
        {.kind = JITDUMP_FRAME_STACK, .stack_bytes = 16},
    };
    (void)state;
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++)
        for (uint64_t below = 0; below < 64; below++) {
            struct jitdump_frame frame = frames[i];
            frame.prologue = UINT64_MAX - below;
            assert_refused(JITDUMP_X86_64, frame, "past 2 GiB");
            assert_refused(JITDUMP_AARCH64, frame, "past 2 GiB");
            frame.prologue = 0;
            frame.slots_at = UINT64_MAX - below;
            assert_refused(JITDUMP_X86_64, frame, "past 2 GiB");
            assert_refused(JITDUMP_AARCH64, frame, "past 2 GiB");
        }
}

static void test_epilogues_that_are_not_there(void **state)
{
    struct jitdump_frame frame = {.kind = JITDUMP_FRAME_POINTER, .epilogue_count = 1};
    (void)state;
    assert_refused(JITDUMP_X86_64, frame, "epilogues is NULL");
    frame.kind = JITDUMP_FRAME_STACK;
    assert_refused(JITDUMP_AARCH64, frame, "epilogues is NULL");
    assert_int_equal(jitdump_cfi_epilogue_bytes(JITDUMP_X86_64, &frame), 0); /* does not look */
}

/* A frame of SIZE bytes, as a later header may have it; what the library says of it. */
static const char *said_of(struct jitdump_cfi *cfi, const void *frame, size_t size)
{
    jitdump_cfi_reset(cfi);
    jitdump_cfi_frame_sized(cfi, frame, size);
    return jitdump_cfi_error(cfi);
}

static void test_frames_of_other_versions(void **state)
{
    struct {
        struct jitdump_frame frame;
        char later[8];
    } given = {.frame = {.kind = JITDUMP_FRAME_POINTER, .stack_bytes = 16}};
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    assert_string_equal(said_of(cfi, &given, sizeof given), "");
    assert_int_equal(jitdump_cfi_prologue_bytes_sized(JITDUMP_X86_64, &given.frame, sizeof given),
                     8);
    given.later[7] = 1;
    assert_string_equal(said_of(cfi, &given, sizeof given.frame), "");
    assert_non_null(strstr(said_of(cfi, &given, sizeof given), "does not know"));
    assert_int_equal(jitdump_cfi_prologue_bytes_sized(JITDUMP_X86_64, &given.frame, sizeof given),
                     -EINVAL);
    assert_non_null(
        strstr(said_of(cfi, &given, offsetof(struct jitdump_frame, slots) - 8), "frame_bytes"));
    assert_string_equal(said_of(cfi, &given, offsetof(struct jitdump_frame, slots)), "");
    assert_non_null(strstr(said_of(cfi, &given, SIZE_MAX), "frame_bytes"));
    assert_non_null(strstr(said_of(cfi, NULL, sizeof given.frame), "NULL"));
    jitdump_cfi_free(cfi);
}

/* Of a program with an older or a newer header: what it has room for is filled, and no more. */
static void test_tables_for_other_versions(void **state)
{
    struct {
        struct jitdump_unwind unwind;
        unsigned char later[8];
    } given;
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    memset(&given, 0xff, sizeof given);
    assert_int_equal(jitdump_cfi_finish_sized(cfi, 16, &given.unwind, sizeof given.unwind), 0);
    assert_int_equal(given.unwind.mapped_size, given.unwind.unwinding_size);
    assert_int_equal(given.later[0], 0xff);
    assert_int_equal(jitdump_cfi_finish_sized(cfi, 16, &given.unwind, sizeof given), 0);
    assert_true(given.unwind.unwinding_size > 0);
    assert_int_equal(given.later[0] | given.later[7], 0);
    memset(&given, 0xff, sizeof given);
    assert_int_equal(jitdump_cfi_finish_sized(cfi, 16, &given.unwind, sizeof given.unwind - 8),
                     -EINVAL);
    assert_int_equal(jitdump_cfi_finish_sized(cfi, 16, &given.unwind, 4097), -EINVAL);
    assert_int_equal(given.unwind.unwinding_size, UINT64_MAX);
    assert_int_equal(jitdump_cfi_finish_sized(NULL, 16, &given.unwind, sizeof given), -ENOMEM);
    assert_int_equal(given.unwind.unwinding_size, 0);
    jitdump_cfi_free(cfi);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_a_block_of_the_whole_code_is_the_default),
        cmocka_unit_test(test_a_pointer_frame_is_its_directives),
        cmocka_unit_test(test_a_stack_frame_is_its_directives),
        cmocka_unit_test(test_directives_go_on_behind_a_frame),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_frames_that_can_not_be),
        cmocka_unit_test(test_epilogues_in_wrong_places),
        cmocka_unit_test(test_prologues_past_the_end),
        cmocka_unit_test(test_epilogues_that_are_not_there),
        cmocka_unit_test(test_frames_of_other_versions),
        cmocka_unit_test(test_tables_for_other_versions),
        cmocka_unit_test(test_riscv64_frames_that_can_not_be),
        cmocka_unit_test(test_a_riscv64_frame_that_was_entered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
