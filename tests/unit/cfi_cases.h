/* Frames of every kind: in short, as assembler source with directives written by hand, and as rows.
 *
 * The source is the authority on instructions and their lengths, the directives in it are what a
 * compiler would write, and the rows are what readelf makes of it (cfi_oracle_test.c compares).
 * Sources name registers by DWARF's numbers; a tail call's jump is in bytes because its
 * restore_state stands behind the first, where the builder has it. */
#ifndef CFI_CASES_H
#define CFI_CASES_H

#include <stdbool.h>

#include "jitdump/cfi.h"

struct cfi_piece {
    uint64_t start, size; /* size 0: no more pieces */
    struct jitdump_frame frame;
};

struct cfi_case {
    const char *name;
    enum jitdump_arch arch;
    uint64_t code_size;
    bool whole; /* the first piece is the whole code: no jitdump_cfi_block */
    struct cfi_piece pieces[3];
    const char *source;
    const char *rows;
};

static const struct cfi_case cfi_cases[] = {
    {
        .name = "x86-64: leaf",
        .arch = JITDUMP_X86_64,
        .code_size = 4,
        .whole = true,
        .pieces = {{0, 4, {.kind = JITDUMP_FRAME_LEAF}}},
        .source = ".cfi_startproc\n"
                  "lea eax, [rdi+rsi]\n"
                  "ret\n"
                  ".cfi_endproc\n",
        .rows = "0 rsp+8 ra=c-8\n",
    },
    {
        .name = "x86-64: frame pointer, saved registers, an early epilogue",
        .arch = JITDUMP_X86_64,
        .code_size = 35,
        .whole = true,
        .pieces = {{0,
                    35,
                    {.kind = JITDUMP_FRAME_POINTER,
                     JITDUMP_SAVED(JITDUMP_RBX, JITDUMP_R12),
                     .stack_bytes = 32,
                     JITDUMP_EPILOGUES(15, 26)}}},
        .source = ".cfi_startproc\n"
                  "push rbp; .cfi_def_cfa_offset 16; .cfi_offset 6, -16\n"
                  "mov rbp, rsp; .cfi_def_cfa_register 6\n"
                  "push rbx; .cfi_offset 3, -24\n"
                  "push r12; .cfi_offset 12, -32\n"
                  "sub rsp, 32\n"
                  "test edi, edi\n"
                  "jne 1f\n"
                  ".cfi_remember_state\n"
                  "add rsp, 32\n"
                  "pop r12; .cfi_restore 12\n"
                  "pop rbx; .cfi_restore 3\n"
                  "pop rbp; .cfi_def_cfa 7, 8; .cfi_restore 6\n"
                  "ret; .cfi_restore_state\n"
                  "1: xor eax, eax\n"
                  "add rsp, 32\n"
                  "pop r12; .cfi_restore 12\n"
                  "pop rbx; .cfi_restore 3\n"
                  "pop rbp; .cfi_def_cfa 7, 8; .cfi_restore 6\n"
                  "ret\n"
                  ".cfi_endproc\n",
        .rows = "0 rsp+8 ra=c-8\n"
                "1 rsp+16 rbp=c-16 ra=c-8\n"
                "4 rbp+16 rbp=c-16 ra=c-8\n"
                "5 rbp+16 rbx=c-24 rbp=c-16 ra=c-8\n"
                "7 rbp+16 rbx=c-24 rbp=c-16 r12=c-32 ra=c-8\n"
                "21 rbp+16 rbx=c-24 rbp=c-16 ra=c-8\n"
                "22 rbp+16 rbp=c-16 ra=c-8\n"
                "23 rsp+8 ra=c-8\n"
                "24 rbp+16 rbx=c-24 rbp=c-16 r12=c-32 ra=c-8\n"
                "32 rbp+16 rbx=c-24 rbp=c-16 ra=c-8\n"
                "33 rbp+16 rbp=c-16 ra=c-8\n"
                "34 rsp+8 ra=c-8\n",
    },
    {
        .name = "x86-64: frame pointer, endbr64, large stack, leave",
        .arch = JITDUMP_X86_64,
        .code_size = 23,
        .whole = true,
        .pieces = {{0,
                    23,
                    {.kind = JITDUMP_FRAME_POINTER,
                     .flags = JITDUMP_FRAME_LANDING_PAD | JITDUMP_FRAME_DYNAMIC,
                     .stack_bytes = 4096,
                     JITDUMP_EPILOGUES(16, 20)}}},
        .source = ".cfi_startproc\n"
                  "endbr64\n"
                  "push rbp; .cfi_def_cfa_offset 16; .cfi_offset 6, -16\n"
                  "mov rbp, rsp; .cfi_def_cfa_register 6\n"
                  "sub rsp, 4096\n"
                  "nop\n"
                  ".cfi_remember_state\n"
                  "leave; .cfi_def_cfa 7, 8; .cfi_restore 6\n"
                  "ret; .cfi_restore_state\n"
                  "push 1\n"
                  ".cfi_remember_state\n"
                  "leave; .cfi_def_cfa 7, 8; .cfi_restore 6\n"
                  "ret; .cfi_restore_state\n"
                  "nop\n"
                  ".cfi_endproc\n",
        .rows = "0 rsp+8 ra=c-8\n"
                "5 rsp+16 rbp=c-16 ra=c-8\n"
                "8 rbp+16 rbp=c-16 ra=c-8\n"
                "17 rsp+8 ra=c-8\n"
                "18 rbp+16 rbp=c-16 ra=c-8\n"
                "21 rsp+8 ra=c-8\n"
                "22 rbp+16 rbp=c-16 ra=c-8\n",
    },
    {
        .name = "x86-64: frame pointer, saved registers, stack of unknown size",
        .arch = JITDUMP_X86_64,
        .code_size = 25,
        .whole = true,
        .pieces = {{0,
                    25,
                    {.kind = JITDUMP_FRAME_POINTER,
                     .flags = JITDUMP_FRAME_DYNAMIC,
                     JITDUMP_SAVED(JITDUMP_R15, JITDUMP_RBX, JITDUMP_RAX),
                     .stack_bytes = 8,
                     JITDUMP_EPILOGUES(15)}}},
        .source = ".cfi_startproc\n"
                  "push rbp; .cfi_def_cfa_offset 16; .cfi_offset 6, -16\n"
                  "mov rbp, rsp; .cfi_def_cfa_register 6\n"
                  "push r15; .cfi_offset 15, -24\n"
                  "push rbx; .cfi_offset 3, -32\n"
                  "push rax; .cfi_offset 0, -40\n"
                  "sub rsp, 8\n"
                  "sub rsp, rdi\n"
                  "lea rsp, [rbp-24]\n"
                  "pop rax; .cfi_restore 0\n"
                  "pop rbx; .cfi_restore 3\n"
                  "pop r15; .cfi_restore 15\n"
                  "pop rbp; .cfi_def_cfa 7, 8; .cfi_restore 6\n"
                  "ret\n"
                  ".cfi_endproc\n",
        .rows = "0 rsp+8 ra=c-8\n"
                "1 rsp+16 rbp=c-16 ra=c-8\n"
                "4 rbp+16 rbp=c-16 ra=c-8\n"
                "6 rbp+16 rbp=c-16 r15=c-24 ra=c-8\n"
                "7 rbp+16 rbx=c-32 rbp=c-16 r15=c-24 ra=c-8\n"
                "8 rbp+16 rax=c-40 rbx=c-32 rbp=c-16 r15=c-24 ra=c-8\n"
                "20 rbp+16 rbx=c-32 rbp=c-16 r15=c-24 ra=c-8\n"
                "21 rbp+16 rbp=c-16 r15=c-24 ra=c-8\n"
                "23 rbp+16 rbp=c-16 ra=c-8\n"
                "24 rsp+8 ra=c-8\n",
    },
    {
        .name = "x86-64: frame pointer and nothing else",
        .arch = JITDUMP_X86_64,
        .code_size = 7,
        .whole = true,
        .pieces = {{0, 7, {.kind = JITDUMP_FRAME_POINTER, JITDUMP_EPILOGUES(5)}}},
        .source = ".cfi_startproc\n"
                  "push rbp; .cfi_def_cfa_offset 16; .cfi_offset 6, -16\n"
                  "mov rbp, rsp; .cfi_def_cfa_register 6\n"
                  "nop\n"
                  "pop rbp; .cfi_def_cfa 7, 8; .cfi_restore 6\n"
                  "ret\n"
                  ".cfi_endproc\n",
        .rows = "0 rsp+8 ra=c-8\n"
                "1 rsp+16 rbp=c-16 ra=c-8\n"
                "4 rbp+16 rbp=c-16 ra=c-8\n"
                "6 rsp+8 ra=c-8\n",
    },
    {
        .name = "x86-64: no frame pointer, a tail call in the middle",
        .arch = JITDUMP_X86_64,
        .code_size = 40,
        .whole = true,
        .pieces = {{0,
                    40,
                    {.kind = JITDUMP_FRAME_STACK,
                     JITDUMP_SAVED(JITDUMP_RBP, JITDUMP_R14, JITDUMP_RBX),
                     .stack_bytes = 128,
                     JITDUMP_EPILOGUES(12, 28)}}},
        .source = ".cfi_startproc\n"
                  "push rbp; .cfi_def_cfa_offset 16; .cfi_offset 6, -16\n"
                  "push r14; .cfi_def_cfa_offset 24; .cfi_offset 14, -24\n"
                  "push rbx; .cfi_def_cfa_offset 32; .cfi_offset 3, -32\n"
                  ".byte 0x48, 0x81, 0xec; .long 128; .cfi_def_cfa_offset 160\n"
                  "nop\n"
                  ".cfi_remember_state\n"
                  ".byte 0x48, 0x81, 0xc4; .long 128; .cfi_def_cfa_offset 32\n"
                  "pop rbx; .cfi_def_cfa_offset 24; .cfi_restore 3\n"
                  "pop r14; .cfi_def_cfa_offset 16; .cfi_restore 14\n"
                  "pop rbp; .cfi_def_cfa_offset 8; .cfi_restore 6\n"
                  ".byte 0xeb; .cfi_restore_state\n"
                  ".byte 0\n"
                  "nop\n"
                  "nop\n"
                  "nop\n"
                  "add rsp, 128; .cfi_def_cfa_offset 32\n"
                  "pop rbx; .cfi_def_cfa_offset 24; .cfi_restore 3\n"
                  "pop r14; .cfi_def_cfa_offset 16; .cfi_restore 14\n"
                  "pop rbp; .cfi_def_cfa_offset 8; .cfi_restore 6\n"
                  "ret\n"
                  ".cfi_endproc\n",
        .rows = "0 rsp+8 ra=c-8\n"
                "1 rsp+16 rbp=c-16 ra=c-8\n"
                "3 rsp+24 rbp=c-16 r14=c-24 ra=c-8\n"
                "4 rsp+32 rbx=c-32 rbp=c-16 r14=c-24 ra=c-8\n"
                "11 rsp+160 rbx=c-32 rbp=c-16 r14=c-24 ra=c-8\n"
                "19 rsp+32 rbx=c-32 rbp=c-16 r14=c-24 ra=c-8\n"
                "20 rsp+24 rbp=c-16 r14=c-24 ra=c-8\n"
                "22 rsp+16 rbp=c-16 ra=c-8\n"
                "23 rsp+8 ra=c-8\n"
                "24 rsp+160 rbx=c-32 rbp=c-16 r14=c-24 ra=c-8\n"
                "35 rsp+32 rbx=c-32 rbp=c-16 r14=c-24 ra=c-8\n"
                "36 rsp+24 rbp=c-16 r14=c-24 ra=c-8\n"
                "38 rsp+16 rbp=c-16 ra=c-8\n"
                "39 rsp+8 ra=c-8\n",
    },
    {
        .name = "x86-64: no frame pointer, operands of 32 bits",
        .arch = JITDUMP_X86_64,
        .code_size = 17,
        .whole = true,
        .pieces = {{0,
                    17,
                    {.kind = JITDUMP_FRAME_STACK,
                     .flags = JITDUMP_FRAME_IMM32,
                     .stack_bytes = 8,
                     JITDUMP_EPILOGUES(9)}}},
        .source = ".cfi_startproc\n"
                  ".byte 0x48, 0x81, 0xec; .long 8; .cfi_def_cfa_offset 16\n"
                  "mov eax, edi\n"
                  ".byte 0x48, 0x81, 0xc4; .long 8; .cfi_def_cfa_offset 8\n"
                  "ret\n"
                  ".cfi_endproc\n",
        .rows = "0 rsp+8 ra=c-8\n"
                "7 rsp+16 ra=c-8\n"
                "16 rsp+8 ra=c-8\n",
    },
    {
        .name = "x86-64: no frame pointer, pushes alone",
        .arch = JITDUMP_X86_64,
        .code_size = 4,
        .whole = true,
        .pieces =
            {{0,
              4,
              {.kind = JITDUMP_FRAME_STACK, JITDUMP_SAVED(JITDUMP_RBX), JITDUMP_EPILOGUES(2)}}},
        .source = ".cfi_startproc\n"
                  "push rbx; .cfi_def_cfa_offset 16; .cfi_offset 3, -16\n"
                  "nop\n"
                  "pop rbx; .cfi_def_cfa_offset 8; .cfi_restore 3\n"
                  "ret\n"
                  ".cfi_endproc\n",
        .rows = "0 rsp+8 ra=c-8\n"
                "1 rsp+16 rbx=c-16 ra=c-8\n"
                "3 rsp+8 ra=c-8\n",
    },
    {
        .name = "x86-64: a fast path before the prologue",
        .arch = JITDUMP_X86_64,
        .code_size = 15,
        .whole = true,
        .pieces = {{0,
                    15,
                    {.kind = JITDUMP_FRAME_STACK,
                     .stack_bytes = 24,
                     .prologue = 5,
                     JITDUMP_EPILOGUES(10)}}},
        .source = ".cfi_startproc\n"
                  "test edi, edi\n"
                  "jne 1f\n"
                  "ret\n"
                  "1: sub rsp, 24; .cfi_def_cfa_offset 32\n"
                  "nop\n"
                  "add rsp, 24; .cfi_def_cfa_offset 8\n"
                  "ret\n"
                  ".cfi_endproc\n",
        .rows = "0 rsp+8 ra=c-8\n"
                "9 rsp+32 ra=c-8\n"
                "14 rsp+8 ra=c-8\n",
    },
    {
        .name = "x86-64: hot and cold, frame pointer",
        .arch = JITDUMP_X86_64,
        .code_size = 26,
        .pieces =
            {{16,
              10,
              {.kind = JITDUMP_FRAME_POINTER,
               .flags = JITDUMP_FRAME_ENTERED,
               JITDUMP_SAVED(JITDUMP_RBX),
               .stack_bytes = 40,
               JITDUMP_EPILOGUES(17)}},
             {0,
              12,
              {.kind = JITDUMP_FRAME_POINTER, JITDUMP_SAVED(JITDUMP_RBX), .stack_bytes = 40}}},
        .source = ".cfi_startproc\n"
                  "push rbp; .cfi_def_cfa_offset 16; .cfi_offset 6, -16\n"
                  "mov rbp, rsp; .cfi_def_cfa_register 6\n"
                  "push rbx; .cfi_offset 3, -24\n"
                  "sub rsp, 40\n"
                  "jmp 3f\n"
                  "nop\n"
                  ".cfi_endproc\n"
                  ".skip 4\n"
                  ".cfi_startproc\n"
                  ".cfi_def_cfa 6, 16; .cfi_offset 6, -16; .cfi_offset 3, -24\n"
                  "3: nop\n"
                  ".cfi_remember_state\n"
                  "add rsp, 40\n"
                  "pop rbx; .cfi_restore 3\n"
                  "pop rbp; .cfi_def_cfa 7, 8; .cfi_restore 6\n"
                  "ret; .cfi_restore_state\n"
                  "ud2\n"
                  ".cfi_endproc\n",
        .rows = "0 rsp+8 ra=c-8\n"
                "1 rsp+16 rbp=c-16 ra=c-8\n"
                "4 rbp+16 rbp=c-16 ra=c-8\n"
                "5 rbp+16 rbx=c-24 rbp=c-16 ra=c-8\n"
                "12 -\n"
                "16 rbp+16 rbx=c-24 rbp=c-16 ra=c-8\n"
                "22 rbp+16 rbp=c-16 ra=c-8\n"
                "23 rsp+8 ra=c-8\n"
                "24 rbp+16 rbx=c-24 rbp=c-16 ra=c-8\n",
    },
    {
        .name = "x86-64: hot and cold, no frame pointer",
        .arch = JITDUMP_X86_64,
        .code_size = 13,
        .pieces = {{0,
                    5,
                    {.kind = JITDUMP_FRAME_STACK, JITDUMP_SAVED(JITDUMP_R13), .stack_bytes = 0}},
                   {5,
                    7,
                    {.kind = JITDUMP_FRAME_STACK,
                     .flags = JITDUMP_FRAME_ENTERED,
                     JITDUMP_SAVED(JITDUMP_R13, JITDUMP_RBX),
                     .stack_bytes = 16}},
                   {12, 1, {.kind = JITDUMP_FRAME_LEAF, .flags = JITDUMP_FRAME_ENTERED}}},
        .source = ".cfi_startproc\n"
                  "push r13; .cfi_def_cfa_offset 16; .cfi_offset 13, -16\n"
                  "nop\n"
                  "nop\n"
                  "nop\n"
                  ".cfi_endproc\n"
                  ".cfi_startproc\n"
                  ".cfi_def_cfa_offset 40; .cfi_offset 13, -16; .cfi_offset 3, -24\n"
                  "nop\n"
                  ".skip 6\n"
                  ".cfi_endproc\n"
                  ".cfi_startproc\n"
                  "ret\n"
                  ".cfi_endproc\n",
        .rows = "0 rsp+8 ra=c-8\n"
                "2 rsp+16 r13=c-16 ra=c-8\n"
                "5 rsp+40 rbx=c-24 r13=c-16 ra=c-8\n"
                "12 rsp+8 ra=c-8\n",
    },
    {
        .name = "aarch64: leaf with bti",
        .arch = JITDUMP_AARCH64,
        .code_size = 8,
        .whole = true,
        .pieces = {{0, 8, {.kind = JITDUMP_FRAME_LEAF, .flags = JITDUMP_FRAME_LANDING_PAD}}},
        .source = ".cfi_startproc\n"
                  "bti c\n"
                  "ret\n"
                  ".cfi_endproc\n",
        .rows = "0 sp+0\n",
    },
    {
        .name = "aarch64: frame pointer, three saved registers, an early epilogue",
        .arch = JITDUMP_AARCH64,
        .code_size = 72,
        .whole = true,
        .pieces = {{0,
                    72,
                    {.kind = JITDUMP_FRAME_POINTER,
                     JITDUMP_SAVED(JITDUMP_X19, JITDUMP_X20, JITDUMP_X21),
                     .stack_bytes = 32,
                     JITDUMP_EPILOGUES(24, 48)}}},
        .source = ".cfi_startproc\n"
                  "stp x29, x30, [sp, #-48]!; .cfi_def_cfa_offset 48; .cfi_offset 29, -48; "
                  ".cfi_offset 30, -40\n"
                  "mov x29, sp; .cfi_def_cfa_register 29\n"
                  "stp x19, x20, [sp, #16]; .cfi_offset 19, -32; .cfi_offset 20, -24\n"
                  "str x21, [sp, #32]; .cfi_offset 21, -16\n"
                  "sub sp, sp, #32\n"
                  "nop\n"
                  ".cfi_remember_state\n"
                  "add sp, sp, #32\n"
                  "ldr x21, [sp, #32]; .cfi_restore 21\n"
                  "ldp x19, x20, [sp, #16]; .cfi_restore 19; .cfi_restore 20\n"
                  "ldp x29, x30, [sp], #48; .cfi_def_cfa 31, 0; .cfi_restore 29; .cfi_restore 30\n"
                  "ret; .cfi_restore_state\n"
                  "nop\n"
                  ".cfi_remember_state\n"
                  "add sp, sp, #32\n"
                  "ldr x21, [sp, #32]; .cfi_restore 21\n"
                  "ldp x19, x20, [sp, #16]; .cfi_restore 19; .cfi_restore 20\n"
                  "ldp x29, x30, [sp], #48; .cfi_def_cfa 31, 0; .cfi_restore 29; .cfi_restore 30\n"
                  "b 4f; .cfi_restore_state\n"
                  "4: nop\n"
                  ".cfi_endproc\n",
        .rows = "0 sp+0\n"
                "4 sp+48 x29=c-48 ra=c-40\n"
                "8 x29+48 x29=c-48 ra=c-40\n"
                "12 x29+48 x19=c-32 x20=c-24 x29=c-48 ra=c-40\n"
                "16 x29+48 x19=c-32 x20=c-24 x21=c-16 x29=c-48 ra=c-40\n"
                "32 x29+48 x19=c-32 x20=c-24 x29=c-48 ra=c-40\n"
                "36 x29+48 x29=c-48 ra=c-40\n"
                "40 sp+0\n"
                "44 x29+48 x19=c-32 x20=c-24 x21=c-16 x29=c-48 ra=c-40\n"
                "56 x29+48 x19=c-32 x20=c-24 x29=c-48 ra=c-40\n"
                "60 x29+48 x29=c-48 ra=c-40\n"
                "64 sp+0\n"
                "68 x29+48 x19=c-32 x20=c-24 x21=c-16 x29=c-48 ra=c-40\n",
    },
    {
        .name = "aarch64: frame pointer, registers that make no pairs, stack of unknown size",
        .arch = JITDUMP_AARCH64,
        .code_size = 56,
        .whole = true,
        .pieces = {{0,
                    56,
                    {.kind = JITDUMP_FRAME_POINTER,
                     .flags = JITDUMP_FRAME_DYNAMIC | JITDUMP_FRAME_LANDING_PAD,
                     JITDUMP_SAVED(JITDUMP_X19, JITDUMP_D8, JITDUMP_X20, JITDUMP_X21),
                     .stack_bytes = 16,
                     JITDUMP_EPILOGUES(32)}}},
        .source = ".cfi_startproc\n"
                  "bti c\n"
                  "stp x29, x30, [sp, #-48]!; .cfi_def_cfa_offset 48; .cfi_offset 29, -48; "
                  ".cfi_offset 30, -40\n"
                  "mov x29, sp; .cfi_def_cfa_register 29\n"
                  "str x19, [sp, #16]; .cfi_offset 19, -32\n"
                  "str d8, [sp, #24]; .cfi_offset 72, -24\n"
                  "stp x20, x21, [sp, #32]; .cfi_offset 20, -16; .cfi_offset 21, -8\n"
                  "sub sp, sp, #16\n"
                  "sub sp, sp, x0\n"
                  "mov sp, x29\n"
                  "ldp x20, x21, [sp, #32]; .cfi_restore 20; .cfi_restore 21\n"
                  "ldr d8, [sp, #24]; .cfi_restore 72\n"
                  "ldr x19, [sp, #16]; .cfi_restore 19\n"
                  "ldp x29, x30, [sp], #48; .cfi_def_cfa 31, 0; .cfi_restore 29; .cfi_restore 30\n"
                  "ret\n"
                  ".cfi_endproc\n",
        .rows = "0 sp+0\n"
                "8 sp+48 x29=c-48 ra=c-40\n"
                "12 x29+48 x29=c-48 ra=c-40\n"
                "16 x29+48 x19=c-32 x29=c-48 ra=c-40\n"
                "20 x29+48 x19=c-32 x29=c-48 ra=c-40 v8=c-24\n"
                "24 x29+48 x19=c-32 x20=c-16 x21=c-8 x29=c-48 ra=c-40 v8=c-24\n"
                "40 x29+48 x19=c-32 x29=c-48 ra=c-40 v8=c-24\n"
                "44 x29+48 x19=c-32 x29=c-48 ra=c-40\n"
                "48 x29+48 x29=c-48 ra=c-40\n"
                "52 sp+0\n",
    },
    {
        .name = "aarch64: no frame pointer, floating point, stack that takes two subs",
        .arch = JITDUMP_AARCH64,
        .code_size = 52,
        .whole = true,
        .pieces = {{0,
                    52,
                    {.kind = JITDUMP_FRAME_STACK,
                     JITDUMP_SAVED(JITDUMP_X30, JITDUMP_X19, JITDUMP_X20, JITDUMP_D8, JITDUMP_D9),
                     .stack_bytes = 4112,
                     JITDUMP_EPILOGUES(24)}}},
        .source =
            ".cfi_startproc\n"
            "stp x30, x19, [sp, #-48]!; .cfi_def_cfa_offset 48; .cfi_offset 30, -48; .cfi_offset "
            "19, -40\n"
            "str x20, [sp, #16]; .cfi_offset 20, -32\n"
            "stp d8, d9, [sp, #24]; .cfi_offset 72, -24; .cfi_offset 73, -16\n"
            "sub sp, sp, #0x1000; .cfi_def_cfa_offset 0x1030\n"
            "sub sp, sp, #0x10; .cfi_def_cfa_offset 0x1040\n"
            "nop\n"
            ".cfi_remember_state\n"
            "add sp, sp, #0x10; .cfi_def_cfa_offset 0x1030\n"
            "add sp, sp, #0x1000; .cfi_def_cfa_offset 48\n"
            "ldp d8, d9, [sp, #24]; .cfi_restore 72; .cfi_restore 73\n"
            "ldr x20, [sp, #16]; .cfi_restore 20\n"
            "ldp x30, x19, [sp], #48; .cfi_def_cfa_offset 0; .cfi_restore 30; .cfi_restore 19\n"
            "ret; .cfi_restore_state\n"
            "nop\n"
            ".cfi_endproc\n",
        .rows = "0 sp+0\n"
                "4 sp+48 x19=c-40 ra=c-48\n"
                "8 sp+48 x19=c-40 x20=c-32 ra=c-48\n"
                "12 sp+48 x19=c-40 x20=c-32 ra=c-48 v8=c-24 v9=c-16\n"
                "16 sp+4144 x19=c-40 x20=c-32 ra=c-48 v8=c-24 v9=c-16\n"
                "20 sp+4160 x19=c-40 x20=c-32 ra=c-48 v8=c-24 v9=c-16\n"
                "28 sp+4144 x19=c-40 x20=c-32 ra=c-48 v8=c-24 v9=c-16\n"
                "32 sp+48 x19=c-40 x20=c-32 ra=c-48 v8=c-24 v9=c-16\n"
                "36 sp+48 x19=c-40 x20=c-32 ra=c-48\n"
                "40 sp+48 x19=c-40 ra=c-48\n"
                "44 sp+0\n"
                "48 sp+4160 x19=c-40 x20=c-32 ra=c-48 v8=c-24 v9=c-16\n",
    },
    {
        .name = "aarch64: no frame pointer, the return address alone, a round stack",
        .arch = JITDUMP_AARCH64,
        .code_size = 20,
        .whole = true,
        .pieces = {{0,
                    20,
                    {.kind = JITDUMP_FRAME_STACK,
                     JITDUMP_SAVED(JITDUMP_X30),
                     .stack_bytes = 8192,
                     JITDUMP_EPILOGUES(8)}}},
        .source = ".cfi_startproc\n"
                  "str x30, [sp, #-16]!; .cfi_def_cfa_offset 16; .cfi_offset 30, -16\n"
                  "sub sp, sp, #8192; .cfi_def_cfa_offset 8208\n"
                  "add sp, sp, #8192; .cfi_def_cfa_offset 16\n"
                  "ldr x30, [sp], #16; .cfi_def_cfa_offset 0; .cfi_restore 30\n"
                  "ret\n"
                  ".cfi_endproc\n",
        .rows = "0 sp+0\n"
                "4 sp+16 ra=c-16\n"
                "8 sp+8208 ra=c-16\n"
                "12 sp+16 ra=c-16\n"
                "16 sp+0\n",
    },
    {
        .name = "aarch64: a leaf with locals",
        .arch = JITDUMP_AARCH64,
        .code_size = 16,
        .whole = true,
        .pieces = {{0, 16, {.kind = JITDUMP_FRAME_STACK, .stack_bytes = 64, JITDUMP_EPILOGUES(8)}}},
        .source = ".cfi_startproc\n"
                  "sub sp, sp, #64; .cfi_def_cfa_offset 64\n"
                  "nop\n"
                  "add sp, sp, #64; .cfi_def_cfa_offset 0\n"
                  "ret\n"
                  ".cfi_endproc\n",
        .rows = "0 sp+0\n"
                "4 sp+64\n"
                "12 sp+0\n",
    },
    {
        .name = "aarch64: hot and cold",
        .arch = JITDUMP_AARCH64,
        .code_size = 16,
        .pieces = {{8,
                    8,
                    {.kind = JITDUMP_FRAME_STACK,
                     .flags = JITDUMP_FRAME_ENTERED,
                     JITDUMP_SAVED(JITDUMP_X30, JITDUMP_X19, JITDUMP_D8),
                     .stack_bytes = 16}},
                   {0,
                    8,
                    {.kind = JITDUMP_FRAME_POINTER,
                     .flags = JITDUMP_FRAME_ENTERED,
                     JITDUMP_SAVED(JITDUMP_X28)}}},
        .source =
            ".cfi_startproc\n"
            ".cfi_def_cfa 29, 32; .cfi_offset 29, -32; .cfi_offset 30, -24; .cfi_offset 28, -16\n"
            "nop\n"
            "nop\n"
            ".cfi_endproc\n"
            ".cfi_startproc\n"
            ".cfi_def_cfa_offset 48; .cfi_offset 30, -32; .cfi_offset 19, -24; .cfi_offset 72, "
            "-16\n"
            "nop\n"
            "nop\n"
            ".cfi_endproc\n",
        .rows = "0 x29+32 x28=c-16 x29=c-32 ra=c-24\n"
                "8 sp+48 x19=c-24 ra=c-32 v8=c-16\n",
    },
#include "tests/unit/cfi_slot_cases.h"
};

enum { CFI_CASES = sizeof cfi_cases / sizeof *cfi_cases };

#endif
