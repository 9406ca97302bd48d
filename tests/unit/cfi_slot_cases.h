/* More of cfi_cases.h, which includes this in its list: registers saved by stores. */
{
    .name = "x86-64: slots at the stack pointer, small and large offsets",
    .arch = JITDUMP_X86_64,
    .code_size = 52,
    .whole = true,
    .pieces = {{0,
                52,
                {.kind = JITDUMP_FRAME_STACK,
                 .stack_bytes = 0x98,
                 JITDUMP_EPILOGUES(26),
                 JITDUMP_SLOTS({JITDUMP_RBX, 0}, {JITDUMP_R12, 8}, {JITDUMP_RBP, 0x90})}}},
    .source = ".cfi_startproc\n"
              "sub rsp, 0x98; .cfi_def_cfa_offset 160\n"
              "mov [rsp], rbx; .cfi_offset 3, -160\n"
              "mov [rsp+8], r12; .cfi_offset 12, -152\n"
              "mov [rsp+0x90], rbp; .cfi_offset 6, -16\n"
              "xor ebx, ebx\n"
              ".cfi_remember_state\n"
              "mov rbx, [rsp]; .cfi_restore 3\n"
              "mov r12, [rsp+8]; .cfi_restore 12\n"
              "mov rbp, [rsp+0x90]; .cfi_restore 6\n"
              "add rsp, 0x98; .cfi_def_cfa_offset 8\n"
              "ret; .cfi_restore_state\n"
              "nop\n"
              ".cfi_endproc\n",
    .rows = "0 rsp+8 ra=c-8\n"
            "7 rsp+160 ra=c-8\n"
            "11 rsp+160 rbx=c-160 ra=c-8\n"
            "16 rsp+160 rbx=c-160 r12=c-152 ra=c-8\n"
            "24 rsp+160 rbx=c-160 rbp=c-16 r12=c-152 ra=c-8\n"
            "30 rsp+160 rbp=c-16 r12=c-152 ra=c-8\n"
            "35 rsp+160 rbp=c-16 ra=c-8\n"
            "43 rsp+160 ra=c-8\n"
            "50 rsp+8 ra=c-8\n"
            "51 rsp+160 rbx=c-160 rbp=c-16 r12=c-152 ra=c-8\n",
},
    {
        .name = "x86-64: pushes, a frame pointer and slots below it, dynamic",
        .arch = JITDUMP_X86_64,
        .code_size = 43,
        .whole = true,
        .pieces = {{0,
                    43,
                    {.kind = JITDUMP_FRAME_POINTER,
                     .flags = JITDUMP_FRAME_DYNAMIC,
                     JITDUMP_SAVED(JITDUMP_R15),
                     .stack_bytes = 0x108,
                     JITDUMP_EPILOGUES(24),
                     JITDUMP_SLOTS({JITDUMP_RBX, -16}, {JITDUMP_R14, -0x110})}}},
        .source = ".cfi_startproc\n"
                  "push rbp; .cfi_def_cfa_offset 16; .cfi_offset 6, -16\n"
                  "mov rbp, rsp; .cfi_def_cfa_register 6\n"
                  "push r15; .cfi_offset 15, -24\n"
                  "sub rsp, 0x108\n"
                  "mov [rbp-16], rbx; .cfi_offset 3, -32\n"
                  "mov [rbp-0x110], r14; .cfi_offset 14, -288\n"
                  ".cfi_remember_state\n"
                  "mov rbx, [rbp-16]; .cfi_restore 3\n"
                  "mov r14, [rbp-0x110]; .cfi_restore 14\n"
                  "lea rsp, [rbp-8]\n"
                  "pop r15; .cfi_restore 15\n"
                  "pop rbp; .cfi_def_cfa 7, 8; .cfi_restore 6\n"
                  "ret; .cfi_restore_state\n"
                  ".cfi_endproc\n",
        .rows = "0 rsp+8 ra=c-8\n"
                "1 rsp+16 rbp=c-16 ra=c-8\n"
                "4 rbp+16 rbp=c-16 ra=c-8\n"
                "6 rbp+16 rbp=c-16 r15=c-24 ra=c-8\n"
                "17 rbp+16 rbx=c-32 rbp=c-16 r15=c-24 ra=c-8\n"
                "24 rbp+16 rbx=c-32 rbp=c-16 r14=c-288 r15=c-24 ra=c-8\n"
                "28 rbp+16 rbp=c-16 r14=c-288 r15=c-24 ra=c-8\n"
                "35 rbp+16 rbp=c-16 r15=c-24 ra=c-8\n"
                "41 rbp+16 rbp=c-16 ra=c-8\n"
                "42 rsp+8 ra=c-8\n",
    },
    {
        .name = "x86-64: a frame pointer stored in the red zone",
        .arch = JITDUMP_X86_64,
        .code_size = 41,
        .whole = true,
        .pieces = {{0,
                    41,
                    {.kind = JITDUMP_FRAME_POINTER,
                     .flags = JITDUMP_FRAME_RED_ZONE,
                     .stack_bytes = 0x28,
                     JITDUMP_EPILOGUES(22),
                     JITDUMP_SLOTS({JITDUMP_RBX, -0x20}, {JITDUMP_R13, -0x18})}}},
        .source = ".cfi_startproc\n"
                  "mov [rsp-8], rbp\n"
                  "lea rbp, [rsp-8]; .cfi_def_cfa 6, 16; .cfi_offset 6, -16\n"
                  "sub rsp, 0x28\n"
                  "mov [rbp-0x20], rbx; .cfi_offset 3, -48\n"
                  "mov [rbp-0x18], r13; .cfi_offset 13, -40\n"
                  ".cfi_remember_state\n"
                  "mov rbx, [rbp-0x20]; .cfi_restore 3\n"
                  "mov r13, [rbp-0x18]; .cfi_restore 13\n"
                  "lea rsp, [rbp+8]; .cfi_def_cfa 7, 8\n"
                  "mov rbp, [rsp-8]; .cfi_restore 6\n"
                  "ret; .cfi_restore_state\n"
                  "nop\n"
                  ".cfi_endproc\n",
        .rows = "0 rsp+8 ra=c-8\n"
                "10 rbp+16 rbp=c-16 ra=c-8\n"
                "18 rbp+16 rbx=c-48 rbp=c-16 ra=c-8\n"
                "22 rbp+16 rbx=c-48 rbp=c-16 r13=c-40 ra=c-8\n"
                "26 rbp+16 rbp=c-16 r13=c-40 ra=c-8\n"
                "30 rbp+16 rbp=c-16 ra=c-8\n"
                "34 rsp+8 rbp=c-16 ra=c-8\n"
                "39 rsp+8 ra=c-8\n"
                "40 rbp+16 rbx=c-48 rbp=c-16 r13=c-40 ra=c-8\n",
    },
    {
        .name = "x86-64: slots with 32-bit offsets, entered in a cold part",
        .arch = JITDUMP_X86_64,
        .code_size = 40,
        .pieces = {{0,
                    32,
                    {.kind = JITDUMP_FRAME_STACK,
                     .flags = JITDUMP_FRAME_IMM32,
                     .stack_bytes = 24,
                     JITDUMP_EPILOGUES(15),
                     JITDUMP_SLOTS({JITDUMP_RBX, 8})}},
                   {36,
                    4,
                    {.kind = JITDUMP_FRAME_STACK,
                     .flags = JITDUMP_FRAME_ENTERED,
                     .stack_bytes = 24,
                     JITDUMP_SLOTS({JITDUMP_RBX, 8})}}},
        .source = ".cfi_startproc\n"
                  ".byte 0x48, 0x81, 0xec, 24, 0, 0, 0; .cfi_def_cfa_offset 32\n"
                  ".byte 0x48, 0x89, 0x9c, 0x24, 8, 0, 0, 0; .cfi_offset 3, -24\n"
                  ".cfi_remember_state\n"
                  ".byte 0x48, 0x8b, 0x9c, 0x24, 8, 0, 0, 0; .cfi_restore 3\n"
                  ".byte 0x48, 0x81, 0xc4, 24, 0, 0, 0; .cfi_def_cfa_offset 8\n"
                  "ret; .cfi_restore_state\n"
                  "nop\n"
                  ".cfi_endproc\n"
                  ".skip 4\n"
                  ".cfi_startproc\n"
                  ".cfi_def_cfa_offset 32; .cfi_offset 3, -24\n"
                  ".skip 4\n"
                  ".cfi_endproc\n",
        .rows = "0 rsp+8 ra=c-8\n"
                "7 rsp+32 ra=c-8\n"
                "15 rsp+32 rbx=c-24 ra=c-8\n"
                "23 rsp+32 ra=c-8\n"
                "30 rsp+8 ra=c-8\n"
                "31 rsp+32 rbx=c-24 ra=c-8\n"
                "32 -\n"
                "36 rsp+32 rbx=c-24 ra=c-8\n",
    },
    {
        .name = "aarch64: slots, the return address in one",
        .arch = JITDUMP_AARCH64,
        .code_size = 40,
        .whole = true,
        .pieces = {{0,
                    40,
                    {.kind = JITDUMP_FRAME_STACK,
                     .stack_bytes = 48,
                     JITDUMP_EPILOGUES(20),
                     JITDUMP_SLOTS({JITDUMP_X30, 40}, {JITDUMP_X19, 16}, {JITDUMP_D8, 24})}}},
        .source = ".cfi_startproc\n"
                  "sub sp, sp, #48; .cfi_def_cfa_offset 48\n"
                  "str x30, [sp, #40]; .cfi_offset 30, -8\n"
                  "str x19, [sp, #16]; .cfi_offset 19, -32\n"
                  "str d8, [sp, #24]; .cfi_offset 72, -24\n"
                  "nop\n"
                  ".cfi_remember_state\n"
                  "ldr x30, [sp, #40]; .cfi_restore 30\n"
                  "ldr x19, [sp, #16]; .cfi_restore 19\n"
                  "ldr d8, [sp, #24]; .cfi_restore 72\n"
                  "add sp, sp, #48; .cfi_def_cfa_offset 0\n"
                  "ret; .cfi_restore_state\n"
                  ".cfi_endproc\n",
        .rows = "0 sp+0\n"
                "4 sp+48\n"
                "8 sp+48 ra=c-8\n"
                "12 sp+48 x19=c-32 ra=c-8\n"
                "16 sp+48 x19=c-32 ra=c-8 v8=c-24\n"
                "24 sp+48 x19=c-32 v8=c-24\n"
                "28 sp+48 v8=c-24\n"
                "32 sp+48\n"
                "36 sp+0\n",
    },
    {
        .name = "aarch64: slots below the frame pointer",
        .arch = JITDUMP_AARCH64,
        .code_size = 40,
        .whole = true,
        .pieces = {{0,
                    40,
                    {.kind = JITDUMP_FRAME_POINTER,
                     .flags = JITDUMP_FRAME_DYNAMIC,
                     .stack_bytes = 32,
                     JITDUMP_EPILOGUES(20),
                     JITDUMP_SLOTS({JITDUMP_X19, -8}, {JITDUMP_X20, -32})}}},
        .source = ".cfi_startproc\n"
                  "stp x29, x30, [sp, #-16]!; .cfi_def_cfa_offset 16; .cfi_offset 29, -16; "
                  ".cfi_offset 30, -8\n"
                  "mov x29, sp; .cfi_def_cfa_register 29\n"
                  "sub sp, sp, #32\n"
                  "stur x19, [x29, #-8]; .cfi_offset 19, -24\n"
                  "stur x20, [x29, #-32]; .cfi_offset 20, -48\n"
                  ".cfi_remember_state\n"
                  "ldur x19, [x29, #-8]; .cfi_restore 19\n"
                  "ldur x20, [x29, #-32]; .cfi_restore 20\n"
                  "mov sp, x29\n"
                  "ldp x29, x30, [sp], #16; .cfi_def_cfa 31, 0; .cfi_restore 29; .cfi_restore 30\n"
                  "ret; .cfi_restore_state\n"
                  ".cfi_endproc\n",
        .rows = "0 sp+0\n"
                "4 sp+16 x29=c-16 ra=c-8\n"
                "8 x29+16 x29=c-16 ra=c-8\n"
                "16 x29+16 x19=c-24 x29=c-16 ra=c-8\n"
                "20 x29+16 x19=c-24 x20=c-48 x29=c-16 ra=c-8\n"
                "24 x29+16 x20=c-48 x29=c-16 ra=c-8\n"
                "28 x29+16 x29=c-16 ra=c-8\n"
                "36 sp+0\n",
    },
    {
        .name = "x86-64: variable arguments are saved before the registers in slots",
        .arch = JITDUMP_X86_64,
        .code_size = 54,
        .whole = true,
        .pieces = {{0,
                    54,
                    {.kind = JITDUMP_FRAME_POINTER,
                     .flags = JITDUMP_FRAME_RED_ZONE,
                     .stack_bytes = 0x58,
                     JITDUMP_EPILOGUES(39),
                     JITDUMP_SLOTS({JITDUMP_RBX, -0x50}),
                     .slots_at = 35}}},
        .source = ".cfi_startproc\n"
                  "mov [rsp-8], rbp\n"
                  "lea rbp, [rsp-8]; .cfi_def_cfa 6, 16; .cfi_offset 6, -16\n"
                  "sub rsp, 0x58\n"
                  "mov [rsp+0x10], rdi\n"
                  "mov [rsp+0x18], rsi\n"
                  "test al, al\n"
                  "je 1f\n"
                  ".byte 0xf2, 0x0f, 0x11, 0x44, 0x24, 0x40, 0x90\n"
                  "1: mov [rbp-0x50], rbx; .cfi_offset 3, -96\n"
                  ".cfi_remember_state\n"
                  "mov rbx, [rbp-0x50]; .cfi_restore 3\n"
                  "lea rsp, [rbp+8]; .cfi_def_cfa 7, 8\n"
                  "mov rbp, [rsp-8]; .cfi_restore 6\n"
                  "ret; .cfi_restore_state\n"
                  "nop\n"
                  ".cfi_endproc\n",
        .rows = "0 rsp+8 ra=c-8\n"
                "10 rbp+16 rbp=c-16 ra=c-8\n"
                "39 rbp+16 rbx=c-96 rbp=c-16 ra=c-8\n"
                "43 rbp+16 rbp=c-16 ra=c-8\n"
                "47 rsp+8 rbp=c-16 ra=c-8\n"
                "52 rsp+8 ra=c-8\n"
                "53 rbp+16 rbx=c-96 rbp=c-16 ra=c-8\n",
    },
    {
        .name = "x86-64: slots behind other code, at the stack pointer",
        .arch = JITDUMP_X86_64,
        .code_size = 21,
        .whole = true,
        .pieces = {{0,
                    21,
                    {.kind = JITDUMP_FRAME_STACK,
                     .stack_bytes = 24,
                     JITDUMP_EPILOGUES(11),
                     JITDUMP_SLOTS({JITDUMP_RBX, 8}),
                     .slots_at = 6}}},
        .source = ".cfi_startproc\n"
                  "sub rsp, 24; .cfi_def_cfa_offset 32\n"
                  "mov eax, edi\n"
                  "mov [rsp+8], rbx; .cfi_offset 3, -24\n"
                  ".cfi_remember_state\n"
                  "mov rbx, [rsp+8]; .cfi_restore 3\n"
                  "add rsp, 24; .cfi_def_cfa_offset 8\n"
                  "ret; .cfi_restore_state\n"
                  ".cfi_endproc\n",
        .rows = "0 rsp+8 ra=c-8\n"
                "4 rsp+32 ra=c-8\n"
                "11 rsp+32 rbx=c-24 ra=c-8\n"
                "16 rsp+32 ra=c-8\n"
                "20 rsp+8 ra=c-8\n",
    },
    {
        .name = "x86-64: a dynamic frame that ends with mov and pop",
        .arch = JITDUMP_X86_64,
        .code_size = 14,
        .whole = true,
        .pieces = {{0,
                    14,
                    {.kind = JITDUMP_FRAME_POINTER,
                     .flags = JITDUMP_FRAME_DYNAMIC | JITDUMP_FRAME_MOV_POP,
                     .stack_bytes = 32,
                     JITDUMP_EPILOGUES(8)}}},
        .source = ".cfi_startproc\n"
                  "push rbp; .cfi_def_cfa_offset 16; .cfi_offset 6, -16\n"
                  "mov rbp, rsp; .cfi_def_cfa_register 6\n"
                  "sub rsp, 32\n"
                  ".cfi_remember_state\n"
                  "mov rsp, rbp\n"
                  "pop rbp; .cfi_def_cfa 7, 8; .cfi_restore 6\n"
                  "ret; .cfi_restore_state\n"
                  "nop\n"
                  ".cfi_endproc\n",
        .rows = "0 rsp+8 ra=c-8\n"
                "1 rsp+16 rbp=c-16 ra=c-8\n"
                "4 rbp+16 rbp=c-16 ra=c-8\n"
                "12 rsp+8 ra=c-8\n"
                "13 rbp+16 rbp=c-16 ra=c-8\n",
    },
    {
        .name = "x86-64: mov and pop where registers were pushed: lea and pops",
        .arch = JITDUMP_X86_64,
        .code_size = 16,
        .whole = true,
        .pieces = {{0,
                    16,
                    {.kind = JITDUMP_FRAME_POINTER,
                     .flags = JITDUMP_FRAME_DYNAMIC | JITDUMP_FRAME_MOV_POP,
                     JITDUMP_SAVED(JITDUMP_RBX),
                     .stack_bytes = 24,
                     JITDUMP_EPILOGUES(9)}}},
        .source = ".cfi_startproc\n"
                  "push rbp; .cfi_def_cfa_offset 16; .cfi_offset 6, -16\n"
                  "mov rbp, rsp; .cfi_def_cfa_register 6\n"
                  "push rbx; .cfi_offset 3, -24\n"
                  "sub rsp, 24\n"
                  ".cfi_remember_state\n"
                  "lea rsp, [rbp-8]\n"
                  "pop rbx; .cfi_restore 3\n"
                  "pop rbp; .cfi_def_cfa 7, 8; .cfi_restore 6\n"
                  "ret; .cfi_restore_state\n"
                  ".cfi_endproc\n",
        .rows = "0 rsp+8 ra=c-8\n"
                "1 rsp+16 rbp=c-16 ra=c-8\n"
                "4 rbp+16 rbp=c-16 ra=c-8\n"
                "5 rbp+16 rbx=c-24 rbp=c-16 ra=c-8\n"
                "14 rbp+16 rbp=c-16 ra=c-8\n"
                "15 rsp+8 ra=c-8\n",
    },
    {
        .name = "aarch64: slots behind other code",
        .arch = JITDUMP_AARCH64,
        .code_size = 28,
        .whole = true,
        .pieces = {{0,
                    28,
                    {.kind = JITDUMP_FRAME_STACK,
                     .stack_bytes = 32,
                     JITDUMP_EPILOGUES(16),
                     JITDUMP_SLOTS({JITDUMP_X19, 8}),
                     .slots_at = 12}}},
        .source = ".cfi_startproc\n"
                  "sub sp, sp, #32; .cfi_def_cfa_offset 32\n"
                  "str q0, [sp, #16]\n"
                  "nop\n"
                  "str x19, [sp, #8]; .cfi_offset 19, -24\n"
                  ".cfi_remember_state\n"
                  "ldr x19, [sp, #8]; .cfi_restore 19\n"
                  "add sp, sp, #32; .cfi_def_cfa_offset 0\n"
                  "ret; .cfi_restore_state\n"
                  ".cfi_endproc\n",
        .rows = "0 sp+0\n"
                "4 sp+32\n"
                "16 sp+32 x19=c-24\n"
                "20 sp+32\n"
                "24 sp+0\n",
    },
