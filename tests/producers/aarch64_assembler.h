/* The aarch64 instructions that aarch64_frames.c makes code of, and the prologues and epilogues that the comment at the
 * top of jitdump/cfi.h lists.  Written from that list and from the Arm ARM (DDI 0487), C6.2 and C7.2; nothing here looks
 * into the library. */
#ifndef PERFJIT_TEST_AARCH64_ASSEMBLER_H
#define PERFJIT_TEST_AARCH64_ASSEMBLER_H

#include "jitdump/cfi.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_BYTES = 4, SAVED_BYTES = 8, X9 = 9, X29 = 29, X30 = 30, SP = 31, CODE_WORDS_MAX = 128 };

/* The code of one function, at ADDR. */
struct code {
    uint64_t addr;
    uint32_t words[CODE_WORDS_MAX];
    size_t count;
};

static inline void emit(struct code *code, uint32_t word)
{
    if (code->count == CODE_WORDS_MAX)
        abort();
    code->words[code->count++] = word;
}

/* The offset of the next instruction. */
static inline uint64_t code_here(const struct code *code)
{
    return code->count * WORD_BYTES;
}

/* VALUE, a multiple of SCALE, as a field of BITS bits with sign. */
static inline uint32_t field(int64_t value, int64_t scale, unsigned bits)
{
    int64_t units = value / scale, limit = INT64_C(1) << (bits - 1);
    if (value % scale || units < -limit || units >= limit)
        abort();
    return (uint32_t)units & ((1u << bits) - 1);
}

/* ---- Moves and arithmetic ---- */

static inline void emit_nop(struct code *code)
{
    emit(code, 0xd503201f);
}

static inline void emit_bti_c(struct code *code)
{
    emit(code, 0xd503245f);
}

static inline void emit_movz(struct code *code, unsigned reg, uint16_t value)
{
    emit(code, 0xd2800000 | (uint32_t)value << 5 | reg);
}

static inline void emit_mov(struct code *code, unsigned to, unsigned from)
{
    emit(code, 0xaa0003e0 | from << 16 | to);
}

/* add TO, FROM, #VALUE: either may be sp. */
static inline void emit_add(struct code *code, unsigned to, unsigned from, uint32_t value)
{
    emit(code, 0x91000000 | value << 10 | from << 5 | to);
}

static inline void emit_fmov(struct code *code, unsigned d, unsigned x)
{
    emit(code, 0x9e670000 | x << 5 | d);
}

/* sub sp, sp, REG */
static inline void emit_sub_sp_register(struct code *code, unsigned reg)
{
    emit(code, 0xcb2063ff | reg << 16);
}

/* sub or add of VALUE, 24 bits, as one of 12 bits and one of 12 bits shifted. */
static inline void emit_sub_sp(struct code *code, uint32_t value)
{
    if (value >> 12)
        emit(code, 0xd14003ff | value >> 12 << 10);
    if (value & 0xfff)
        emit(code, 0xd10003ff | (value & 0xfff) << 10);
}

static inline void emit_add_sp(struct code *code, uint32_t value)
{
    if (value & 0xfff)
        emit(code, 0x910003ff | (value & 0xfff) << 10);
    if (value >> 12)
        emit(code, 0x914003ff | value >> 12 << 10);
}

/* ---- Jumps ---- */

static inline void emit_ret(struct code *code)
{
    emit(code, 0xd65f03c0);
}

static inline void emit_b(struct code *code, uint64_t target)
{
    emit(code, 0x14000000 | field((int64_t)(target - code->addr - code_here(code)), 4, 26));
}

static inline void emit_bl(struct code *code, uint64_t target)
{
    emit(code, 0x94000000 | field((int64_t)(target - code->addr - code_here(code)), 4, 26));
}

/* cbnz x0 to a place that emit_label_here gives it.  Returns what to give to that. */
static inline size_t emit_cbnz_x0(struct code *code)
{
    emit(code, 0xb5000000);
    return code->count - 1;
}

static inline void emit_label_here(struct code *code, size_t branch)
{
    code->words[branch] |= field((int64_t)(code->count - branch) * WORD_BYTES, 4, 19) << 5;
}

/* ---- Loads and stores of one or two registers, by DWARF's numbers ---- */

enum access { OFFSET, PRE_INDEX, POST_INDEX };

static inline bool is_d(unsigned reg)
{
    return reg >= JITDUMP_D0;
}

/* [sp, #OFFSET], [sp, #OFFSET]! or [sp], #OFFSET */
static inline void emit_one(struct code *code, bool load, unsigned reg, enum access access,
                            int64_t offset)
{
    uint32_t word = is_d(reg) ? 0xfc000000 : 0xf8000000;
    word |= load ? 1u << 22 : 0;
    word |= (uint32_t)SP << 5 | (is_d(reg) ? reg - JITDUMP_D0 : reg);
    if (access == OFFSET)
        word |= 1u << 24 | field(offset, SAVED_BYTES, 13) << 10;
    else
        word |= (access == PRE_INDEX ? 3u : 1u) << 10 | field(offset, 1, 9) << 12;
    emit(code, word);
}

static inline void emit_two(struct code *code, bool load, unsigned first, unsigned second,
                            enum access access, int64_t offset)
{
    static const uint32_t forms[] = {[OFFSET] = 2, [PRE_INDEX] = 3, [POST_INDEX] = 1};
    uint32_t base = is_d(first) ? JITDUMP_D0 : 0;
    uint32_t word = is_d(first) ? 0x6c000000 : 0xa8000000;
    word |= forms[access] << 23 | (load ? 1u << 22 : 0);
    word |= field(offset, SAVED_BYTES, 7) << 15;
    emit(code, word | (second - base) << 10 | (uint32_t)SP << 5 | (first - base));
}

/* ---- Frames ---- */

static inline bool frame_has_pointer(const struct jitdump_frame *frame)
{
    return frame->kind == JITDUMP_FRAME_POINTER;
}

/* The size of the save area: cfi.h's A. */
static inline int64_t frame_area(const struct jitdump_frame *frame)
{
    int64_t bytes = SAVED_BYTES * (int64_t)frame->saved_count;
    return (bytes + (frame_has_pointer(frame) ? 16 : 0) + 15) & ~INT64_C(15);
}

/* How many instructions store the saved registers of FRAME, and the first register of each; the one behind the last is
 * saved_count. */
static inline size_t frame_stores(const struct jitdump_frame *frame,
                                  uint32_t first[JITDUMP_FRAME_SAVED_MAX + 1])
{
    size_t count = 0;
    uint32_t i = 0;
    while (i < frame->saved_count) {
        first[count++] = i;
        bool pair =
            i + 1 < frame->saved_count && is_d(frame->saved[i]) == is_d(frame->saved[i + 1]);
        i += pair ? 2 : 1;
    }
    first[count] = i;
    return count;
}

/* Store or load the saved registers FROM up to BEHIND, one or two of them. */
static inline void emit_saved(struct code *code, const struct jitdump_frame *frame, bool load,
                              uint32_t from, uint32_t behind)
{
    int64_t offset = (frame_has_pointer(frame) ? 16 : 0) + SAVED_BYTES * (int64_t)from;
    enum access access = OFFSET;
    if (from == 0 && !frame_has_pointer(frame)) {
        access = load ? POST_INDEX : PRE_INDEX;
        offset = load ? frame_area(frame) : -frame_area(frame);
    }
    if (behind - from == 2)
        emit_two(code, load, frame->saved[from], frame->saved[from + 1], access, offset);
    else
        emit_one(code, load, frame->saved[from], access, offset);
}

static inline void emit_prologue(struct code *code, const struct jitdump_frame *frame)
{
    uint32_t first[JITDUMP_FRAME_SAVED_MAX + 1];
    size_t stores = frame_stores(frame, first);
    if (frame->flags & JITDUMP_FRAME_LANDING_PAD)
        emit_bti_c(code);
    if (frame_has_pointer(frame)) {
        emit_two(code, false, X29, X30, PRE_INDEX, -frame_area(frame));
        emit_add(code, X29, SP, 0);
    }
    for (size_t i = 0; i < stores; i++)
        emit_saved(code, frame, false, first[i], first[i + 1]);
    emit_sub_sp(code, frame->stack_bytes);
}

/* All but the instruction that leaves the function. */
static inline void emit_epilogue(struct code *code, const struct jitdump_frame *frame)
{
    uint32_t first[JITDUMP_FRAME_SAVED_MAX + 1];
    size_t stores = frame_stores(frame, first);
    if (frame->flags & JITDUMP_FRAME_DYNAMIC)
        emit_add(code, SP, X29, 0);
    else
        emit_add_sp(code, frame->stack_bytes);
    for (size_t i = stores; i-- > 0;)
        emit_saved(code, frame, true, first[i], first[i + 1]);
    if (frame_has_pointer(frame))
        emit_two(code, true, X29, X30, POST_INDEX, frame_area(frame));
}

#endif
