/* See x86_assembler.h.
 *
 * An instruction here is
 *
 *     [REX] [0f] opcode ModRM [SIB] [offset: 1 or 4 bytes] [constant: 1, 4 or 8 bytes]
 *
 *     REX    0x40 | W << 3 | R << 2 | X << 1 | B     W: 64 bits; R, X, B: fourth bit of reg, index, base
 *     ModRM  mod << 6 | reg << 3 | base              mod: 3 register, 0/1/2 memory with 0/1/4 offset bytes
 *     SIB    shift << 6 | index << 3 | base          there when ModRM's base is 4, which rsp and r12 are
 */
#include "examples/tinyjit/x86_assembler.h"

#include "examples/tinyjit/memory.h"

#include <string.h>

struct x86_jump {
    size_t at; /* of the 32-bit distance, counted from behind it */
    x86_label label;
};

enum { WIDE = true, NARROW = false };

void x86_assembler_open(struct x86_assembler *x86, size_t capacity)
{
    *x86 = (struct x86_assembler){.bytes = memory_new(capacity, 1), .capacity = capacity};
}

void x86_assembler_close(struct x86_assembler *x86)
{
    free(x86->bytes);
    free(x86->labels);
    free(x86->jumps);
}

/* ---- Bytes ---- */

static void put(struct x86_assembler *x86, uint64_t value, size_t count)
{
    if (x86->overflow || count > x86->capacity - x86->size) {
        x86->overflow = true;
        return;
    }
    for (size_t i = 0; i < count; i++)
        x86->bytes[x86->size++] = (uint8_t)(value >> (8 * i));
}

static void put_rex(struct x86_assembler *x86, bool wide, unsigned reg, unsigned index,
                    unsigned base)
{
    unsigned rex = 0x40u | (unsigned)wide << 3 | (reg >> 3) << 2 | (index >> 3) << 1 | base >> 3;
    if (rex != 0x40)
        put(x86, rex, 1);
}

static void put_opcode(struct x86_assembler *x86, unsigned opcode)
{
    if (opcode > 0xff)
        put(x86, opcode >> 8, 1);
    put(x86, opcode & 0xff, 1);
}

/* An instruction on two registers; REG can also be the opcode's extension. */
static void put_registers(struct x86_assembler *x86, bool wide, unsigned opcode, unsigned reg,
                          unsigned rm)
{
    put_rex(x86, wide, reg, 0, rm);
    put_opcode(x86, opcode);
    put(x86, 0xc0 | (reg & 7) << 3 | (rm & 7), 1);
}

static void put_memory(struct x86_assembler *x86, bool wide, unsigned opcode, unsigned reg,
                       struct x86_memory memory)
{
    bool indexed = memory.index != X86_RSP;
    bool sib = indexed || (memory.base & 7) == X86_RSP;
    bool byte_offset = memory.offset == (int8_t)memory.offset;
    /* Without an offset, rbp and r13 as base would mean something else. */
    unsigned mod = memory.offset == 0 && (memory.base & 7) != X86_RBP ? 0 : byte_offset ? 1 : 2;
    put_rex(x86, wide, reg, indexed ? memory.index : 0, memory.base);
    put_opcode(x86, opcode);
    put(x86, mod << 6 | (reg & 7) << 3 | (sib ? 4u : memory.base & 7u), 1);
    if (sib)
        put(x86, (unsigned)memory.shift << 6 | (memory.index & 7u) << 3 | (memory.base & 7u), 1);
    put(x86, (uint32_t)memory.offset, mod == 0 ? 0 : mod == 1 ? 1 : 4);
}

/* ---- Labels and jumps ---- */

x86_label x86_label_new(struct x86_assembler *x86)
{
    x86->labels =
        array_room(x86->labels, x86->label_count, &x86->label_capacity, sizeof *x86->labels);
    x86->labels[x86->label_count] = SIZE_MAX;
    return (x86_label)x86->label_count++;
}

void x86_label_bind(struct x86_assembler *x86, x86_label label)
{
    x86->labels[label] = x86->size;
}

static void put_distance(struct x86_assembler *x86, x86_label label)
{
    x86->jumps = array_room(x86->jumps, x86->jump_count, &x86->jump_capacity, sizeof *x86->jumps);
    x86->jumps[x86->jump_count++] = (struct x86_jump){x86->size, label};
    put(x86, 0, 4);
}

void x86_jmp(struct x86_assembler *x86, x86_label label)
{
    put(x86, 0xe9, 1);
    put_distance(x86, label);
}

void x86_jcc(struct x86_assembler *x86, enum x86_condition condition, x86_label label)
{
    put_opcode(x86, 0x0f80u | (unsigned)condition);
    put_distance(x86, label);
}

bool x86_assembler_finish(struct x86_assembler *x86)
{
    if (x86->overflow)
        return false;
    for (size_t i = 0; i < x86->jump_count; i++) {
        size_t at = x86->jumps[i].at;
        int32_t distance = (int32_t)((int64_t)x86->labels[x86->jumps[i].label] - (int64_t)(at + 4));
        memcpy(x86->bytes + at, &distance, sizeof distance);
    }
    return true;
}

/* ---- Moves ---- */

void x86_mov(struct x86_assembler *x86, enum x86_register to, enum x86_register from)
{
    if (to != from)
        put_registers(x86, WIDE, 0x89, from, to);
}

void x86_load(struct x86_assembler *x86, enum x86_register to, struct x86_memory from)
{
    put_memory(x86, WIDE, 0x8b, to, from);
}

void x86_store(struct x86_assembler *x86, struct x86_memory to, enum x86_register from)
{
    put_memory(x86, WIDE, 0x89, from, to);
}

void x86_store_constant(struct x86_assembler *x86, struct x86_memory to, int32_t value)
{
    put_memory(x86, WIDE, 0xc7, 0, to);
    put(x86, (uint32_t)value, 4);
}

void x86_mov_constant(struct x86_assembler *x86, enum x86_register to, int64_t value)
{
    if (value == 0) {
        put_registers(x86, NARROW, 0x31, to, to); /* writing 32 bits clears the upper half */
    } else if (value == (uint32_t)value) {
        put_rex(x86, NARROW, 0, 0, to);
        put(x86, 0xb8u | (to & 7u), 1);
        put(x86, (uint64_t)value, 4);
    } else if (value == (int32_t)value) {
        put_registers(x86, WIDE, 0xc7, 0, to);
        put(x86, (uint64_t)value, 4);
    } else {
        put_rex(x86, WIDE, 0, 0, to);
        put(x86, 0xb8u | (to & 7u), 1);
        put(x86, (uint64_t)value, 8);
    }
}

/* ---- Arithmetic ---- */

void x86_alu(struct x86_assembler *x86, enum x86_alu operation, enum x86_register to,
             enum x86_register from)
{
    put_registers(x86, WIDE, (unsigned)operation << 3 | 1, from, to);
}

void x86_alu_memory(struct x86_assembler *x86, enum x86_alu operation, enum x86_register to,
                    struct x86_memory from)
{
    put_memory(x86, WIDE, (unsigned)operation << 3 | 3, to, from);
}

void x86_alu_constant(struct x86_assembler *x86, enum x86_alu operation, enum x86_register to,
                      int32_t value)
{
    bool byte = value == (int8_t)value;
    put_registers(x86, WIDE, byte ? 0x83 : 0x81, operation, to);
    put(x86, (uint32_t)value, byte ? 1 : 4);
}

void x86_alu32_memory_constant(struct x86_assembler *x86, enum x86_alu operation,
                               struct x86_memory to, int32_t value)
{
    bool byte = value == (int8_t)value;
    put_memory(x86, NARROW, byte ? 0x83 : 0x81, operation, to);
    put(x86, (uint32_t)value, byte ? 1 : 4);
}

void x86_test(struct x86_assembler *x86, enum x86_register left, enum x86_register right)
{
    put_registers(x86, WIDE, 0x85, right, left);
}

void x86_imul(struct x86_assembler *x86, enum x86_register to, enum x86_register from)
{
    put_registers(x86, WIDE, 0x0faf, to, from);
}

void x86_imul_memory(struct x86_assembler *x86, enum x86_register to, struct x86_memory from)
{
    put_memory(x86, WIDE, 0x0faf, to, from);
}

void x86_imul_constant(struct x86_assembler *x86, enum x86_register to, enum x86_register from,
                       int32_t value)
{
    bool byte = value == (int8_t)value;
    put_registers(x86, WIDE, byte ? 0x6b : 0x69, to, from);
    put(x86, (uint32_t)value, byte ? 1 : 4);
}

void x86_neg(struct x86_assembler *x86, enum x86_register to)
{
    put_registers(x86, WIDE, 0xf7, 3, to);
}

void x86_not(struct x86_assembler *x86, enum x86_register to)
{
    put_registers(x86, WIDE, 0xf7, 2, to);
}

void x86_cqo(struct x86_assembler *x86)
{
    put(x86, 0x9948, 2);
}

void x86_idiv(struct x86_assembler *x86, enum x86_register divisor)
{
    put_registers(x86, WIDE, 0xf7, 7, divisor);
}

void x86_shift_constant(struct x86_assembler *x86, enum x86_shift operation, enum x86_register to,
                        uint8_t count)
{
    put_registers(x86, WIDE, 0xc1, operation, to);
    put(x86, count, 1);
}

void x86_shift_cl(struct x86_assembler *x86, enum x86_shift operation, enum x86_register to)
{
    put_registers(x86, WIDE, 0xd3, operation, to);
}

void x86_set(struct x86_assembler *x86, enum x86_condition condition, enum x86_register to)
{
    /* A REX prefix, even an empty one, makes sil and dil of what would be dh and bh. */
    if (to >= X86_RSP && to < X86_R8)
        put(x86, 0x40, 1);
    put_registers(x86, NARROW, 0x0f90u | (unsigned)condition, 0, to);
    put_registers(x86, WIDE, 0x0fb6, to, to);
}

/* ---- Stack and control ---- */

void x86_push(struct x86_assembler *x86, enum x86_register from)
{
    put_rex(x86, NARROW, 0, 0, from);
    put(x86, 0x50u | (from & 7u), 1);
}

void x86_pop(struct x86_assembler *x86, enum x86_register to)
{
    put_rex(x86, NARROW, 0, 0, to);
    put(x86, 0x58u | (to & 7u), 1);
}

void x86_call_memory(struct x86_assembler *x86, struct x86_memory target)
{
    put_memory(x86, NARROW, 0xff, 2, target);
}

void x86_jmp_memory(struct x86_assembler *x86, struct x86_memory target)
{
    put_memory(x86, NARROW, 0xff, 4, target);
}

void x86_jmp_register(struct x86_assembler *x86, enum x86_register target)
{
    put_registers(x86, NARROW, 0xff, 4, target);
}

void x86_ret(struct x86_assembler *x86)
{
    put(x86, 0xc3, 1);
}

void x86_ud2(struct x86_assembler *x86)
{
    put(x86, 0x0b0f, 2);
}
