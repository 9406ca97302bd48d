/* riscv64: the canonical frames of cfi.h, which lists their instructions. */
#include "jitdump/cfi/cfi_arch.h"

enum {
    WORD = 8, /* bytes of a saved register */
    STACK_ALIGN = 16,
    INSTRUCTION = 4,
    COMPRESSED = 2, /* code between prologue and epilogue may have such instructions */
    LAST_F = JITDUMP_RISCV_F0 + 31,
    SHORT_MAX = 2032,                     /* of an addi, up and down, in multiples of 16 */
    STACK_BYTES_MAX = 0x7ffffff0 - 0x800, /* what lui and addi can say */
    STORE_REACH = 2048,                   /* of an sd, down; up one less */
};

/* def_cfa sp, 0; the return address is in its register, like all others. */
static const uint8_t entry_rules[] = {CFA_def_cfa, JITDUMP_RISCV_SP, 0};

static bool has_pointer(const struct jitdump_frame *frame)
{
    return frame->kind == JITDUMP_FRAME_POINTER;
}

static int dwarf_register(unsigned encoding, bool vector)
{
    if (encoding > 31)
        return -1;
    return (int)encoding + (vector ? JITDUMP_RISCV_F0 : 0);
}

static bool can_be_saved(const struct jitdump_frame *frame, uint32_t reg)
{
    bool is_pointers = reg == JITDUMP_RISCV_RA || reg == JITDUMP_RISCV_S0;
    return reg <= LAST_F && (reg >= JITDUMP_RISCV_T0 || reg == JITDUMP_RISCV_RA) &&
           !(is_pointers && has_pointer(frame));
}

static const char *check(const struct jitdump_frame *frame)
{
    for (uint32_t i = 0; i < frame->saved_count; i++)
        if (!can_be_saved(frame, frame->saved[i]))
            return "a saved register that can't be one";
    if (cfi_check_flags(frame))
        return cfi_check_flags(frame);
    if (frame->stack_bytes % STACK_ALIGN)
        return "stack_bytes is not a multiple of 16";
    return frame->stack_bytes > STACK_BYTES_MAX ? "stack_bytes doesn't fit in 31 bits" : NULL;
}

static int64_t area_bytes(const struct jitdump_frame *frame)
{
    int64_t bytes = WORD * ((int64_t)frame->saved_count + (has_pointer(frame) ? 2 : 0));
    return (bytes + STACK_ALIGN - 1) / STACK_ALIGN * STACK_ALIGN;
}

static void saved_at(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at,
                     uint32_t i)
{
    int64_t place = has_pointer(frame) ? (int64_t)i + 2 : i;
    jitdump_cfi_offset(cfi, at, frame->saved[i], -WORD * (place + 1));
}

/* The stack_bytes lie below the save area, whose end the frame pointer points to.  A store can
 * reach this many of them. */
static struct cfi_room slot_room(const struct jitdump_frame *frame)
{
    int64_t start = 0, end = frame->stack_bytes;
    if (has_pointer(frame)) {
        end = -area_bytes(frame);
        start = end - frame->stack_bytes;
    }
    return (struct cfi_room){start < -STORE_REACH ? -STORE_REACH : start,
                             end > STORE_REACH ? STORE_REACH : end};
}

static void slot_at(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at,
                    const struct jitdump_slot *slot)
{
    int64_t below_cfa = has_pointer(frame) ? 0 : area_bytes(frame) + frame->stack_bytes;
    jitdump_cfi_offset(cfi, at, slot->reg, slot->offset - below_cfa);
}

static uint64_t store_slots(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at)
{
    at = cfi_slots_at(cfi, frame, at);
    for (size_t i = 0; i < frame->slot_count; i++)
        slot_at(cfi, frame, at += INSTRUCTION, &frame->slots[i]);
    return at;
}

static uint64_t load_slots(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at)
{
    for (size_t i = 0; i < frame->slot_count; i++)
        jitdump_cfi_restore(cfi, at += INSTRUCTION, frame->slots[i].reg);
    return at;
}

/* The length of an add to sp of stack_bytes. */
static uint64_t add_bytes(const struct jitdump_frame *frame)
{
    if (frame->stack_bytes == 0)
        return 0;
    return frame->stack_bytes <= SHORT_MAX ? INSTRUCTION : 3 * INSTRUCTION;
}

static uint64_t store_pointer(struct jitdump_cfi *cfi, uint64_t at)
{
    at += INSTRUCTION; /* sd ra */
    jitdump_cfi_offset(cfi, at, JITDUMP_RISCV_RA, -WORD);
    at += INSTRUCTION; /* sd s0 */
    jitdump_cfi_offset(cfi, at, JITDUMP_RISCV_S0, -2 * WORD);
    return at;
}

static uint64_t prologue(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at)
{
    if (frame->flags & JITDUMP_FRAME_LANDING_PAD)
        at += INSTRUCTION;
    if (area_bytes(frame)) {
        at += INSTRUCTION; /* addi sp */
        jitdump_cfi_def_cfa_offset(cfi, at, area_bytes(frame));
    }
    if (has_pointer(frame))
        at = store_pointer(cfi, at);
    for (uint32_t i = 0; i < frame->saved_count; i++) {
        at += INSTRUCTION; /* sd */
        saved_at(cfi, frame, at, i);
    }
    if (has_pointer(frame)) {
        at += INSTRUCTION; /* addi s0 */
        jitdump_cfi_def_cfa(cfi, at, JITDUMP_RISCV_S0, 0);
    }
    at += add_bytes(frame);
    if (!has_pointer(frame) && frame->stack_bytes)
        jitdump_cfi_def_cfa_offset(cfi, at, area_bytes(frame) + frame->stack_bytes);
    return store_slots(cfi, frame, at);
}

static uint64_t load_pointer(struct jitdump_cfi *cfi, const struct jitdump_frame *frame,
                             uint64_t at)
{
    at += INSTRUCTION; /* ld s0: from here on the frame is found by sp */
    jitdump_cfi_def_cfa(cfi, at, JITDUMP_RISCV_SP, area_bytes(frame));
    jitdump_cfi_restore(cfi, at, JITDUMP_RISCV_S0);
    at += INSTRUCTION; /* ld ra */
    jitdump_cfi_restore(cfi, at, JITDUMP_RISCV_RA);
    return at;
}

static uint64_t epilogue(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at)
{
    at = load_slots(cfi, frame, at);
    at += frame->flags & JITDUMP_FRAME_DYNAMIC ? INSTRUCTION : add_bytes(frame);
    if (!has_pointer(frame) && frame->stack_bytes)
        jitdump_cfi_def_cfa_offset(cfi, at, area_bytes(frame));
    for (uint32_t i = frame->saved_count; i-- > 0;) {
        at += INSTRUCTION; /* ld */
        jitdump_cfi_restore(cfi, at, frame->saved[i]);
    }
    if (has_pointer(frame))
        at = load_pointer(cfi, frame, at);
    if (area_bytes(frame)) {
        at += INSTRUCTION; /* addi sp */
        jitdump_cfi_def_cfa_offset(cfi, at, 0);
    }
    return at;
}

static void entered(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at)
{
    if (has_pointer(frame)) {
        jitdump_cfi_def_cfa(cfi, at, JITDUMP_RISCV_S0, 0);
        jitdump_cfi_offset(cfi, at, JITDUMP_RISCV_RA, -WORD);
        jitdump_cfi_offset(cfi, at, JITDUMP_RISCV_S0, -2 * WORD);
    } else {
        jitdump_cfi_def_cfa_offset(cfi, at, area_bytes(frame) + frame->stack_bytes);
    }
    for (uint32_t i = 0; i < frame->saved_count; i++)
        saved_at(cfi, frame, at, i);
    for (size_t i = 0; i < frame->slot_count; i++)
        slot_at(cfi, frame, at, &frame->slots[i]);
}

const struct cfi_arch jd_cfi_riscv64 = {
    .arch = JITDUMP_RISCV64,
    .cie = {.code_align = COMPRESSED,
            .data_align = -WORD,
            .return_register = JITDUMP_RISCV_RA,
            .instructions = entry_rules,
            .instructions_bytes = sizeof entry_rules},
    .cfa_offset = 0,
    .leave_bytes = COMPRESSED,
    .check = check,
    .dwarf_register = dwarf_register,
    .slot_room = slot_room,
    .may_be_in_slot = can_be_saved,
    .prologue = prologue,
    .epilogue = epilogue,
    .entered = entered,
};
