/* An assembler for the x86-64 instructions that tinyjit needs.
 *
 * Instructions go into a buffer of fixed size.  What doesn't fit is dropped, with everything after it, and
 * `overflow` stays set: whoever writes code tests once, at the end.
 *
 * The code is position-independent: jumps inside it are relative, and everything outside it is reached through
 * memory operands.  So finished code can be copied anywhere.
 *
 * Operands are in Intel's order: destination first.  All operations are 64 bits wide unless named otherwise. */
#ifndef TINYJIT_X86_ASSEMBLER_H
#define TINYJIT_X86_ASSEMBLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum x86_register {
    X86_RAX,
    X86_RCX,
    X86_RDX,
    X86_RBX,
    X86_RSP,
    X86_RBP,
    X86_RSI,
    X86_RDI,
    X86_R8,
    X86_R9,
    X86_R10,
    X86_R11,
    X86_R12,
    X86_R13,
    X86_R14,
    X86_R15,
    X86_REGISTERS
};

/* Numbered as the instructions number them. */
enum x86_alu { X86_ADD = 0, X86_OR = 1, X86_AND = 4, X86_SUB = 5, X86_XOR = 6, X86_CMP = 7 };

enum x86_shift { X86_SHL = 4, X86_SHR = 5, X86_SAR = 7 };

enum x86_condition {
    X86_BELOW = 0x2,
    X86_ABOVE_EQUAL = 0x3,
    X86_EQUAL = 0x4,
    X86_NOT_EQUAL = 0x5,
    X86_LESS = 0xc,
    X86_GREATER_EQUAL = 0xd,
    X86_LESS_EQUAL = 0xe,
    X86_GREATER = 0xf
};

/* [base + index << shift + offset]; index X86_RSP, which can't be one, means none. */
struct x86_memory {
    enum x86_register base;
    enum x86_register index;
    uint8_t shift;
    int32_t offset;
};

static inline struct x86_memory x86_at(enum x86_register base, int32_t offset)
{
    struct x86_memory memory = {base, X86_RSP, 0, offset};
    return memory;
}

static inline struct x86_memory x86_indexed(enum x86_register base, enum x86_register index,
                                            uint8_t shift, int32_t offset)
{
    struct x86_memory memory = {base, index, shift, offset};
    return memory;
}

static inline enum x86_condition x86_negated(enum x86_condition condition)
{
    return (enum x86_condition)((int)condition ^ 1);
}

/* A place in the code to jump to, bound or not yet. */
typedef uint32_t x86_label;

struct x86_assembler {
    uint8_t *bytes; /* capacity bytes, freed by x86_assembler_close */
    size_t size, capacity;
    bool overflow;
    size_t *labels; /* where each label is bound */
    size_t label_count, label_capacity;
    struct x86_jump *jumps; /* jumps to labels, to be filled in at the end */
    size_t jump_count, jump_capacity;
};

void x86_assembler_open(struct x86_assembler *x86, size_t capacity);

/* Fill in the jumps.  Returns false if the code didn't fit. */
bool x86_assembler_finish(struct x86_assembler *x86);

void x86_assembler_close(struct x86_assembler *x86);

x86_label x86_label_new(struct x86_assembler *x86);
void x86_label_bind(struct x86_assembler *x86, x86_label label);
void x86_jmp(struct x86_assembler *x86, x86_label label);
void x86_jcc(struct x86_assembler *x86, enum x86_condition condition, x86_label label);

void x86_mov(struct x86_assembler *x86, enum x86_register to, enum x86_register from);
void x86_load(struct x86_assembler *x86, enum x86_register to, struct x86_memory from);
void x86_store(struct x86_assembler *x86, struct x86_memory to, enum x86_register from);
void x86_store_constant(struct x86_assembler *x86, struct x86_memory to, int32_t value);

/* In as few bytes as the value allows; may change the flags. */
void x86_mov_constant(struct x86_assembler *x86, enum x86_register to, int64_t value);

void x86_alu(struct x86_assembler *x86, enum x86_alu operation, enum x86_register to,
             enum x86_register from);
void x86_alu_memory(struct x86_assembler *x86, enum x86_alu operation, enum x86_register to,
                    struct x86_memory from);
void x86_alu_constant(struct x86_assembler *x86, enum x86_alu operation, enum x86_register to,
                      int32_t value);
/* 32 bits wide. */
void x86_alu32_memory_constant(struct x86_assembler *x86, enum x86_alu operation,
                               struct x86_memory to, int32_t value);
void x86_test(struct x86_assembler *x86, enum x86_register left, enum x86_register right);
void x86_imul(struct x86_assembler *x86, enum x86_register to, enum x86_register from);
void x86_imul_memory(struct x86_assembler *x86, enum x86_register to, struct x86_memory from);
void x86_imul_constant(struct x86_assembler *x86, enum x86_register to, enum x86_register from,
                       int32_t value);
void x86_neg(struct x86_assembler *x86, enum x86_register to);
void x86_not(struct x86_assembler *x86, enum x86_register to);

/* Sign-extend rax into rdx:rax; divide rdx:rax by DIVISOR into rax, remainder rdx. */
void x86_cqo(struct x86_assembler *x86);
void x86_idiv(struct x86_assembler *x86, enum x86_register divisor);

void x86_shift_constant(struct x86_assembler *x86, enum x86_shift operation, enum x86_register to,
                        uint8_t count);
/* By cl. */
void x86_shift_cl(struct x86_assembler *x86, enum x86_shift operation, enum x86_register to);

/* TO becomes 1 or 0, all 64 bits. */
void x86_set(struct x86_assembler *x86, enum x86_condition condition, enum x86_register to);

void x86_push(struct x86_assembler *x86, enum x86_register from);
void x86_pop(struct x86_assembler *x86, enum x86_register to);
void x86_call_memory(struct x86_assembler *x86, struct x86_memory target);
void x86_jmp_memory(struct x86_assembler *x86, struct x86_memory target);
void x86_jmp_register(struct x86_assembler *x86, enum x86_register target);
void x86_ret(struct x86_assembler *x86);
void x86_ud2(struct x86_assembler *x86);

#endif
