/* jitdump_cfi_check: sound frames have no fault, wrong ones are found at the instruction at which
 * they are wrong, and what can't be known is no fault. */
#include "jitdump/cfi.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__})

/* What is said of SIZE bytes of CODE that CFI describes; CFI is freed. */
static void assert_says(struct jitdump_cfi *cfi, const uint8_t *code, size_t size, int result,
                        const char *text)
{
    int got = jitdump_cfi_check(cfi, code, size);
    assert_string_equal(jitdump_cfi_error(cfi), "");
    assert_string_equal(jitdump_cfi_checked(cfi), text);
    assert_int_equal(got, result);
    jitdump_cfi_free(cfi);
}

static struct jitdump_cfi *x86_64(void)
{
    return jitdump_cfi_new(JITDUMP_X86_64);
}

/* Rows may name registers that the machine, or the checker, does not have. */
static void test_registers_that_there_are_none_of(void **state)
{
    static const uint8_t code[] = {0x90, 0x90, 0xc3};
    static const unsigned none[] = {17, 20, 31, 32, 63, 64, 100, 255, 4000};
    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
        jitdump_cfi_def_cfa(cfi, 0, none[i], 16); /* the entry's too */
        jitdump_cfi_def_cfa_offset(cfi, 1, 24);
        jitdump_cfi_register(cfi, 2, JITDUMP_RBX, none[i]);
        jitdump_cfi_def_cfa(cfi, 2, JITDUMP_RSP, 8);
        int result = jitdump_cfi_check(cfi, code, sizeof code);
        assert_true(result == 0 || result == -EBADMSG);
        jitdump_cfi_reset(cfi);
        jitdump_cfi_register(cfi, 1, JITDUMP_RBX, none[i]);
        jitdump_cfi_def_cfa_register(cfi, 2, none[i]);
        result = jitdump_cfi_check(cfi, code, sizeof code);
        assert_true(result == 0 || result == -EBADMSG);
        jitdump_cfi_free(cfi);
    }
}

/* ---- A function with a frame pointer, and two ways out ---- */

static const uint8_t two_exits[] = {
    0x55,                   /*  0 push rbp */
    0x48, 0x89, 0xe5,       /*  1 mov rbp, rsp */
    0x53,                   /*  4 push rbx */
    0x41, 0x54,             /*  5 push r12 */
    0x48, 0x83, 0xec, 0x20, /*  7 sub rsp, 32 */
    0x31, 0xdb,             /* 11 xor ebx, ebx */
    0x45, 0x31, 0xe4,       /* 13 xor r12d, r12d */
    0x85, 0xff,             /* 16 test edi, edi */
    0x75, 0x09,             /* 18 jne 29 */
    0x48, 0x83, 0xc4, 0x20, /* 20 add rsp, 32 */
    0x41, 0x5c,             /* 24 pop r12 */
    0x5b,                   /* 26 pop rbx */
    0x5d,                   /* 27 pop rbp */
    0xc3,                   /* 28 ret */
    0x31, 0xc0,             /* 29 xor eax, eax */
    0x48, 0x83, 0xc4, 0x20, /* 31 add rsp, 32 */
    0x41, 0x5c,             /* 35 pop r12 */
    0x5b,                   /* 37 pop rbx */
    0x5d,                   /* 38 pop rbp */
    0xc3,                   /* 39 ret */
};

static struct jitdump_cfi *described(struct jitdump_frame frame)
{
    struct jitdump_cfi *cfi = x86_64();
    jitdump_cfi_frame(cfi, &frame);
    return cfi;
}

static void assert_frame(struct jitdump_frame frame, const char *text)
{
    assert_says(described(frame), two_exits, sizeof two_exits, *text ? -EBADMSG : 0, text);
}

static void test_sound(void **state)
{
    (void)state;
    assert_frame((struct jitdump_frame){.kind = JITDUMP_FRAME_POINTER,
                                        JITDUMP_SAVED(JITDUMP_RBX, JITDUMP_R12),
                                        .stack_bytes = 32,
                                        JITDUMP_EPILOGUES(20, 31)},
                 "");
}

static void test_wrong_frames(void **state)
{
    (void)state;
    assert_frame((struct jitdump_frame){.kind = JITDUMP_FRAME_POINTER,
                                        JITDUMP_SAVED(JITDUMP_R12, JITDUMP_RBX),
                                        .stack_bytes = 32,
                                        JITDUMP_EPILOGUES(20, 31)},
                 "at +0x7 (sub $32,%rsp): the caller's rbx is at c-24 here, the frame says c-32");
    assert_frame((struct jitdump_frame){.kind = JITDUMP_FRAME_POINTER,
                                        JITDUMP_SAVED(JITDUMP_R12),
                                        .stack_bytes = 32,
                                        JITDUMP_EPILOGUES(20, 31)},
                 "at +0x7 (sub $32,%rsp): the caller's r12 is at c-32 here, the frame says c-24");
    assert_frame((struct jitdump_frame){.kind = JITDUMP_FRAME_POINTER,
                                        JITDUMP_SAVED(JITDUMP_RBX, JITDUMP_R12),
                                        .stack_bytes = 32,
                                        JITDUMP_EPILOGUES(20)},
                 "at +0x27 (ret): the CFA is rsp+8 here, the frame says rbp+16");
    assert_frame((struct jitdump_frame){.kind = JITDUMP_FRAME_LEAF},
                 "at +0x1 (mov %rsp,%rbp): the CFA is rsp+16 here, the frame says rsp+8");
    assert_frame((struct jitdump_frame){.kind = JITDUMP_FRAME_STACK,
                                        JITDUMP_SAVED(JITDUMP_RBP, JITDUMP_RBX, JITDUMP_R12),
                                        .stack_bytes = 32,
                                        JITDUMP_EPILOGUES(20, 31)},
                 "at +0x4 (push %rbx): the CFA is rsp+16 here, the frame says rsp+32");
}

/* By directives, right up to where FAULTY is. */
static struct jitdump_cfi *by_hand(int faulty)
{
    struct jitdump_cfi *cfi = x86_64();
    jitdump_cfi_def_cfa_offset(cfi, 1, faulty == 1 ? 24 : 16);
    jitdump_cfi_offset(cfi, 1, JITDUMP_RBP, faulty == 2 ? -24 : -16);
    jitdump_cfi_def_cfa(cfi, 4, JITDUMP_RBP, faulty == 3 ? 24 : 16);
    if (faulty != 4)
        jitdump_cfi_offset(cfi, 5, JITDUMP_RBX, -24);
    jitdump_cfi_offset(cfi, 7, faulty == 5 ? JITDUMP_R13 : JITDUMP_R12, -32);
    jitdump_cfi_remember_state(cfi, 20);
    if (faulty == 6)
        jitdump_cfi_def_cfa(cfi, 27, JITDUMP_RSP, 8);
    if (faulty != 7)
        jitdump_cfi_def_cfa(cfi, 28, JITDUMP_RSP, 8);
    if (faulty != 8)
        jitdump_cfi_restore_state(cfi, 29);
    jitdump_cfi_def_cfa(cfi, 39, JITDUMP_RSP, faulty == 9 ? 16 : 8);
    return cfi;
}

static void test_wrong_directives(void **state)
{
    static const char *const texts[] = {
        "",
        "at +0x1 (mov %rsp,%rbp): the CFA is rsp+16 here, the frame says rsp+24",
        "at +0x1 (mov %rsp,%rbp): the caller's rbp is at c-16 here, the frame says c-24",
        "at +0x4 (push %rbx): the CFA is rbp+16 here, the frame says rbp+24",
        "at +0xd (45 31 e4): the caller's rbx is at c-24 here, the frame says that it is in rbx",
        "at +0x7 (sub $32,%rsp): what is at c-32 here is not the caller's r13, as the frame says",
        "at +0x1b (pop %rbp): the CFA is rsp+16 here, the frame says rsp+8",
        "at +0x1c (ret): the CFA is rsp+8 here, the frame says rbp+16",
        "at +0x1d (31 c0): the CFA is rsp+64 here, the frame says rsp+8",
        "at +0x27 (ret): the CFA is rsp+8 here, the frame says rsp+16",
    };
    (void)state;
    for (int faulty = 0; faulty < 10; faulty++)
        if (faulty != 5)
            assert_says(by_hand(faulty), two_exits, sizeof two_exits, faulty ? -EBADMSG : 0,
                        texts[faulty]);
    struct jitdump_cfi *cfi = by_hand(5);
    assert_int_equal(jitdump_cfi_check(cfi, two_exits, sizeof two_exits), -EBADMSG);
    assert_non_null(strstr(jitdump_cfi_checked(cfi), "at +0x7 (sub $32,%rsp): "));
    assert_non_null(strstr(jitdump_cfi_checked(cfi), "r13"));
    jitdump_cfi_free(cfi);
}

/* A fault of the frame is none of the builder, and its tables stay. */
static void test_builder_goes_on(void **state)
{
    struct jitdump_unwind before, after;
    struct jitdump_cfi *cfi = by_hand(1);
    (void)state;
    assert_int_equal(jitdump_cfi_finish(cfi, sizeof two_exits, &before), 0);
    assert_int_equal(jitdump_cfi_check(cfi, two_exits, sizeof two_exits), -EBADMSG);
    assert_int_equal(jitdump_cfi_finish(cfi, sizeof two_exits, &after), 0);
    assert_ptr_equal(before.data, after.data);
    assert_int_equal(before.unwinding_size, after.unwinding_size);
    jitdump_cfi_free(cfi);
    assert_int_equal(jitdump_cfi_check(NULL, two_exits, sizeof two_exits), -ENOMEM);
    assert_string_equal(jitdump_cfi_checked(NULL), "");
}

/* ---- What can't be known ---- */

static void test_unknown(void **state)
{
    (void)state;
    /* sub rsp, rdi; add rsp, rdi; ret */
    assert_says(x86_64(), BYTES(0x48, 0x29, 0xfc, 0x48, 0x01, 0xfc, 0xc3), 0,
                "not checked from +0x3 on");
    /* jmp rax */
    assert_says(x86_64(), BYTES(0xff, 0xe0, 0x90), 0, "not checked from +0x2 on");
    /* nop; jmp *%rax at the end, with the frame gone: a tail call; with it there: somewhere in here
     */
    assert_says(x86_64(), BYTES(0x90, 0xff, 0xe0), 0, "");
    struct jitdump_cfi *cfi = x86_64();
    jitdump_cfi_def_cfa_offset(cfi, 1, 16);
    assert_says(cfi, BYTES(0x50, 0xff, 0xe0), 0, "not checked from +0x1 on");
    /* 06: none; push rax behind it would be a fault */
    assert_says(x86_64(), BYTES(0x06, 0x50, 0xc3), 0, "not checked from +0x0 on");
    /* cut in the middle */
    assert_says(x86_64(), BYTES(0x90, 0x48, 0x89), 0, "not checked from +0x1 on");
    /* data behind a ret */
    assert_says(x86_64(), BYTES(0xc3, 0x50, 0x50), 0, "");
}

/* push rax; call +0, which does not return; nop; then what a jump led to: ret */
static void test_call_that_does_not_return(void **state)
{
    static const uint8_t code[] = {0x85, 0xff, 0x74, 0x09, 0x50, 0xe8, 0x00,
                                   0x00, 0x01, 0x00, 0x0f, 0x1f, 0x00, 0xc3};
    struct jitdump_cfi *cfi = x86_64();
    (void)state;
    jitdump_cfi_def_cfa_offset(cfi, 5, 16);
    jitdump_cfi_def_cfa_offset(cfi, 13, 8);
    assert_says(cfi, code, sizeof code, 0, "");
}

/* push rax; call, which pops it; ret */
static void test_call_that_pops(void **state)
{
    static const uint8_t code[] = {0x50, 0xe8, 0x00, 0x00, 0x01, 0x00, 0xc3};
    struct jitdump_cfi *cfi = x86_64();
    (void)state;
    jitdump_cfi_def_cfa_offset(cfi, 1, 16);
    jitdump_cfi_def_cfa_offset(cfi, 6, 8);
    assert_says(cfi, code, sizeof code, 0, "");
}

/* push rbp; mov rbp, rsp; call; leave; ret: the row of the ret is said one instruction too early.
 * That the call returns is seen from what follows. */
static void test_early_row_behind_a_call(void **state)
{
    static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xe8, 0, 0, 1, 0, 0xc9, 0xc3};
    struct jitdump_cfi *cfi = x86_64();
    (void)state;
    jitdump_cfi_def_cfa_offset(cfi, 1, 16);
    jitdump_cfi_offset(cfi, 1, JITDUMP_RBP, -16);
    jitdump_cfi_def_cfa_register(cfi, 4, JITDUMP_RBP);
    jitdump_cfi_def_cfa(cfi, 9, JITDUMP_RSP, 8);
    jitdump_cfi_restore(cfi, 10, JITDUMP_RBP);
    assert_says(cfi, code, sizeof code, -EBADMSG,
                "at +0x9 (leave): the CFA is rsp+16 here, the frame says rsp+8");
}

/* Code that is jumped to inside of a frame: the frame is taken as described, and what is done to it
 * is not.  add rsp, 16; jmp away */
static void test_entered(void **state)
{
    static const uint8_t code[] = {0x90, 0x48, 0x83, 0xc4, 0x10, 0xe9, 0x00, 0x00, 0x01, 0x00};
    for (int faulty = 0; faulty < 2; faulty++) {
        struct jitdump_cfi *cfi = x86_64();
        jitdump_cfi_def_cfa_offset(cfi, 0, 96);
        jitdump_cfi_offset(cfi, 0, JITDUMP_RBX, -24);
        if (!faulty)
            jitdump_cfi_def_cfa_offset(cfi, 5, 80);
        assert_says(cfi, code, sizeof code, faulty ? -EBADMSG : 0,
                    faulty ? "at +0x5 (jmp): the CFA is rsp+80 here, the frame says rsp+96"
                           : "its entry was taken as described");
    }
    (void)state;
}

/* ---- Saved with stores, and without a frame pointer ---- */

/* sub rsp, 24; mov [rsp+16], rbx; mov rbx, rdi; call; mov rbx, [rsp+16]; add rsp, 24; ret */
static void test_stores(void **state)
{
    static const uint8_t code[] = {0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x5c, 0x24, 0x10,
                                   0x48, 0x89, 0xfb, 0xe8, 0x00, 0x00, 0x01, 0x00, 0x48,
                                   0x8b, 0x5c, 0x24, 0x10, 0x48, 0x83, 0xc4, 0x18, 0xc3};
    static const char *const texts[] = {
        "",
        "at +0x9 (mov %rdi,%rbx): the caller's rbx is at c-16 here, the frame says c-24",
        "at +0xc (call): the caller's rbx is at c-16 here, the frame says that it is in rbx",
        "at +0x4 (mov %rbx,0x10(%rsp)): rbx is not saved here, the frame says at c-16",
    };
    (void)state;
    for (int faulty = 0; faulty < 4; faulty++) {
        struct jitdump_cfi *cfi = x86_64();
        jitdump_cfi_def_cfa_offset(cfi, 4, 32);
        if (faulty != 2)
            jitdump_cfi_offset(cfi, faulty == 3 ? 4 : 9, JITDUMP_RBX, faulty == 1 ? -24 : -16);
        jitdump_cfi_restore(cfi, 22, JITDUMP_RBX);
        jitdump_cfi_def_cfa_offset(cfi, 26, 8);
        assert_says(cfi, code, sizeof code, faulty ? -EBADMSG : 0, texts[faulty]);
    }
}

/* ---- aarch64 ---- */

static const uint32_t arm[] = {
    0xa9bd7bfd, /*  0 stp x29, x30, [sp, #-48]! */
    0x910003fd, /*  4 mov x29, sp */
    0xa90153f3, /*  8 stp x19, x20, [sp, #16] */
    0xd10083ff, /* 12 sub sp, sp, #32 */
    0xaa0003f3, /* 16 mov x19, x0 */
    0xd2800034, /* 20 mov x20, #1 */
    0x94001000, /* 24 bl */
    0xb4000060, /* 28 cbz x0, 40 */
    0x910003bf, /* 32 mov sp, x29 */
    0x14000002, /* 36 b 44 */
    0x910083ff, /* 40 add sp, sp, #32 */
    0xa94153f3, /* 44 ldp x19, x20, [sp, #16] */
    0xa8c37bfd, /* 48 ldp x29, x30, [sp], #48 */
    0xd65f03c0, /* 52 ret */
};

static void assert_arm(int faulty, const char *text)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_AARCH64);
    jitdump_cfi_def_cfa_offset(cfi, 4, faulty == 1 ? 32 : 48);
    jitdump_cfi_offset(cfi, 4, JITDUMP_X29, -48);
    jitdump_cfi_offset(cfi, 4, JITDUMP_X30, faulty == 2 ? -48 : -40);
    jitdump_cfi_def_cfa_register(cfi, 8, JITDUMP_X29);
    if (faulty != 3) {
        jitdump_cfi_offset(cfi, 12, JITDUMP_X19, -32);
        jitdump_cfi_offset(cfi, 12, faulty == 4 ? JITDUMP_X21 : JITDUMP_X20, -24);
    }
    if (faulty != 5)
        jitdump_cfi_def_cfa(cfi, 52, JITDUMP_SP, 0);
    int error = jitdump_cfi_check(cfi, arm, sizeof arm);
    assert_non_null(strstr(jitdump_cfi_checked(cfi), text));
    assert_int_equal(error, faulty ? -EBADMSG : 0);
    assert_int_equal(strlen(jitdump_cfi_checked(cfi)) != 0, faulty != 0);
    jitdump_cfi_free(cfi);
}

static void test_aarch64(void **state)
{
    (void)state;
    assert_arm(0, "");
    assert_arm(1, "at +0x4 (mov x29, sp): the CFA is sp+48 here, the frame says sp+32");
    assert_arm(2, "at +0x4 (mov x29, sp): the caller's x30 is at c-40 here, the frame says c-48");
    assert_arm(3, "at +0x14 (d2800034): the caller's x19 is at c-32 here, the frame says that it "
                  "is in x19");
    assert_arm(4, "at +0xc (sub sp, sp, #32): ");
    assert_arm(5, "at +0x34 (ret): the CFA is sp+0 here, the frame says x29+48");
}

/* paciasp; stp; ldp; autiasp; ret */
static void test_signed_addresses(void **state)
{
    static const uint32_t code[] = {0xd503233f, 0xa9bf7bfd, 0xa8c17bfd, 0xd50323bf, 0xd65f03c0};
    (void)state;
    for (int faulty = 0; faulty < 2; faulty++) {
        struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_AARCH64);
        if (!faulty)
            jitdump_cfi_escape(cfi, 4, "\x2d", 1);
        jitdump_cfi_def_cfa_offset(cfi, 8, 16);
        jitdump_cfi_offset(cfi, 8, JITDUMP_X29, -16);
        jitdump_cfi_offset(cfi, 8, JITDUMP_X30, -8);
        jitdump_cfi_restore(cfi, 12, JITDUMP_X29);
        jitdump_cfi_restore(cfi, 12, JITDUMP_X30);
        jitdump_cfi_def_cfa_offset(cfi, 12, 0);
        if (!faulty)
            jitdump_cfi_escape(cfi, 16, "\x2d", 1);
        assert_says(cfi, (const uint8_t *)code, sizeof code, faulty ? -EBADMSG : 0,
                    faulty ? "at +0x4 (stp x29, x30, [sp, #-16]!): the return address is signed "
                             "here, the frame does not say so"
                           : "");
    }
}

/* ---- Registers in slots, functions of one buffer ---- */

static const uint8_t slots_at_sp[] = {
    0x48, 0x81, 0xec, 0x98, 0,    0, 0,    /*  0 sub rsp, 0x98 */
    0x48, 0x89, 0x1c, 0x24,                /*  7 mov [rsp], rbx */
    0x4c, 0x89, 0x64, 0x24, 0x08,          /* 11 mov [rsp+8], r12 */
    0x48, 0x89, 0xac, 0x24, 0x90, 0, 0, 0, /* 16 mov [rsp+0x90], rbp */
    0x31, 0xdb,                            /* 24 xor ebx, ebx */
    0x45, 0x31, 0xe4,                      /* 26 xor r12d, r12d */
    0x31, 0xed,                            /* 29 xor ebp, ebp */
    0x48, 0x8b, 0x1c, 0x24,                /* 31 mov rbx, [rsp] */
    0x4c, 0x8b, 0x64, 0x24, 0x08,          /* 35 mov r12, [rsp+8] */
    0x48, 0x8b, 0xac, 0x24, 0x90, 0, 0, 0, /* 40 mov rbp, [rsp+0x90] */
    0x48, 0x81, 0xc4, 0x98, 0,    0, 0,    /* 48 add rsp, 0x98 */
    0xc3,                                  /* 55 ret */
};

static const uint8_t red_zone[] = {
    0x48, 0x89, 0x6c, 0x24, 0xf8, /*  0 mov [rsp-8], rbp */
    0x48, 0x8d, 0x6c, 0x24, 0xf8, /*  5 lea rbp, [rsp-8] */
    0x48, 0x83, 0xec, 0x28,       /* 10 sub rsp, 0x28 */
    0x48, 0x89, 0x5d, 0xe0,       /* 14 mov [rbp-0x20], rbx */
    0x4c, 0x89, 0x6d, 0xe8,       /* 18 mov [rbp-0x18], r13 */
    0x31, 0xdb,                   /* 22 xor ebx, ebx */
    0x45, 0x31, 0xed,             /* 24 xor r13d, r13d */
    0x48, 0x8b, 0x5d, 0xe0,       /* 27 mov rbx, [rbp-0x20] */
    0x4c, 0x8b, 0x6d, 0xe8,       /* 31 mov r13, [rbp-0x18] */
    0x48, 0x8d, 0x65, 0x08,       /* 35 lea rsp, [rbp+8] */
    0x48, 0x8b, 0x6c, 0x24, 0xf8, /* 39 mov rbp, [rsp-8] */
    0xc3,                         /* 44 ret */
};

static const uint32_t arm_slots[] = {
    0xd100c3ff, /*  0 sub sp, sp, #48 */
    0xf90017fe, /*  4 str x30, [sp, #40] */
    0xf9000bf3, /*  8 str x19, [sp, #16] */
    0xfd000fe8, /* 12 str d8, [sp, #24] */
    0xd2800013, /* 16 mov x19, #0 */
    0xf94017fe, /* 20 ldr x30, [sp, #40] */
    0xf9400bf3, /* 24 ldr x19, [sp, #16] */
    0xfd400fe8, /* 28 ldr d8, [sp, #24] */
    0x9100c3ff, /* 32 add sp, sp, #48 */
    0xd65f03c0, /* 36 ret */
};

enum { BUFFER_OFFSET = 4096 };

/* What is said of CODE, SIZE bytes at BUFFER_OFFSET of a buffer, whose epilogue is at END, when it
 * was described in one pass: its tables that were given out stay. */
static void assert_one_pass(enum jitdump_arch arch, struct jitdump_frame frame, uint64_t end,
                            const void *code, size_t size, int result, const char *text)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(arch);
    const uint64_t epilogue = BUFFER_OFFSET + end;
    struct jitdump_unwind unwind;
    uint8_t tables[512];
    frame.epilogues = &epilogue;
    frame.epilogue_count = 1;
    for (int round = 0; round < 2; round++) {
        jitdump_cfi_begin(cfi, BUFFER_OFFSET);
        jitdump_cfi_frame(cfi, &frame);
        assert_int_equal(jitdump_cfi_end(cfi, BUFFER_OFFSET + size, &unwind), 0);
        assert_true(unwind.unwinding_size <= sizeof tables);
        memcpy(tables, unwind.data, unwind.unwinding_size);
        assert_int_equal(jitdump_cfi_check(cfi, code, size), result);
        assert_string_equal(jitdump_cfi_checked(cfi), text);
        assert_memory_equal(tables, unwind.data, unwind.unwinding_size);
    }
    jitdump_cfi_free(cfi);
}

static void test_slots(void **state)
{
    const struct jitdump_frame at_sp = {
        .kind = JITDUMP_FRAME_STACK,
        .stack_bytes = 0x98,
        JITDUMP_SLOTS({JITDUMP_RBX, 0}, {JITDUMP_R12, 8}, {JITDUMP_RBP, 0x90})};
    const struct jitdump_frame at_rbp = {.kind = JITDUMP_FRAME_POINTER,
                                         .flags = JITDUMP_FRAME_RED_ZONE,
                                         .stack_bytes = 0x28,
                                         JITDUMP_SLOTS({JITDUMP_RBX, -0x20}, {JITDUMP_R13, -0x18})};
    const struct jitdump_frame on_arm = {
        .kind = JITDUMP_FRAME_STACK,
        .stack_bytes = 48,
        JITDUMP_SLOTS({JITDUMP_X30, 40}, {JITDUMP_X19, 16}, {JITDUMP_D8, 24})};
    (void)state;
    assert_one_pass(JITDUMP_X86_64, at_sp, 31, slots_at_sp, sizeof slots_at_sp, 0, "");
    assert_one_pass(JITDUMP_X86_64, at_rbp, 27, red_zone, sizeof red_zone, 0, "");
    assert_one_pass(JITDUMP_AARCH64, on_arm, 20, arm_slots, sizeof arm_slots, 0, "");
}

static void test_wrong_slots(void **state)
{
    struct jitdump_frame frame = {
        .kind = JITDUMP_FRAME_STACK,
        .stack_bytes = 0x98,
        JITDUMP_SLOTS({JITDUMP_RBX, 0}, {JITDUMP_R12, 16}, {JITDUMP_RBP, 0x90})};
    struct jitdump_frame other = {.kind = JITDUMP_FRAME_POINTER,
                                  .flags = JITDUMP_FRAME_RED_ZONE,
                                  .stack_bytes = 0x28,
                                  JITDUMP_SLOTS({JITDUMP_R13, -0x20}, {JITDUMP_RBX, -0x18})};
    const struct jitdump_frame on_arm = {
        .kind = JITDUMP_FRAME_STACK,
        .stack_bytes = 48,
        JITDUMP_SLOTS({JITDUMP_X30, 32}, {JITDUMP_X19, 16}, {JITDUMP_D8, 24})};
    const struct jitdump_frame of_vectors = {
        .kind = JITDUMP_FRAME_STACK,
        .stack_bytes = 48,
        JITDUMP_SLOTS({JITDUMP_X30, 40}, {JITDUMP_X19, 16}, {JITDUMP_D8, 32})};
    (void)state;
    assert_one_pass(
        JITDUMP_X86_64, frame, 31, slots_at_sp, sizeof slots_at_sp, -EBADMSG,
        "at +0x10 (mov %rbp,0x90(%rsp)): the caller's r12 is at c-152 here, the frame says c-144");
    frame.stack_bytes = 0xa0;
    assert_one_pass(
        JITDUMP_X86_64, frame, 31, slots_at_sp, sizeof slots_at_sp, -EBADMSG,
        "at +0x7 (mov %rbx,0x0(%rsp)): the CFA is rsp+160 here, the frame says rsp+168");
    assert_one_pass(
        JITDUMP_X86_64, other, 27, red_zone, sizeof red_zone, -EBADMSG,
        "at +0x12 (mov %r13,-0x18(%rbp)): r13 is not saved here, the frame says at c-48");
    assert_one_pass(JITDUMP_AARCH64, on_arm, 20, arm_slots, sizeof arm_slots, -EBADMSG,
                    "at +0x8 (f9000bf3): the caller's x30 is at c-8 here, the frame says c-16");
    assert_one_pass(JITDUMP_AARCH64, of_vectors, 20, arm_slots, sizeof arm_slots, -EBADMSG,
                    "at +0x10 (d2800013): the caller's d8 is at c-24 here, the frame says c-16");
}

/* Of other machines' code nothing is known, and nothing is wrong. */
static void test_other_machines(void **state)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_RISCV64);
    (void)state;
    jitdump_cfi_def_cfa_offset(cfi, 4, 16);
    assert_says(cfi, (const uint8_t *)arm_slots, sizeof arm_slots, 0, "not checked from +0x0 on");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound),
        cmocka_unit_test(test_wrong_frames),
        cmocka_unit_test(test_wrong_directives),
        cmocka_unit_test(test_builder_goes_on),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_call_that_does_not_return),
        cmocka_unit_test(test_call_that_pops),
        cmocka_unit_test(test_early_row_behind_a_call),
        cmocka_unit_test(test_entered),
        cmocka_unit_test(test_stores),
        cmocka_unit_test(test_aarch64),
        cmocka_unit_test(test_signed_addresses),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_wrong_slots),
        cmocka_unit_test(test_registers_that_there_are_none_of),
        cmocka_unit_test(test_other_machines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
