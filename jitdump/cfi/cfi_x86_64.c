/* x86-64: the canonical frames of cfi.h, which lists their instructions. */
#include "jitdump/cfi/cfi_arch.h"

enum {
    WORD = 8, /* bytes of a push */
    ENDBR64_BYTES = 4,
    PUSH_RBP_BYTES = 1, /* and pop */
    MOV_RBP_RSP_BYTES = 3,
    LEA_RSP_BYTES = 4,
    LEAVE_BYTES = 1,
    STACK_BYTES_MAX = 0x7ffffff0, /* what sub's operand can say */
    RED_ZONE_MOV_BYTES = 5,       /* mov [rsp-8], rbp; lea rbp, [rsp-8]; mov rbp, [rsp-8] */
    XMM0 = 17,                    /* DWARF's numbers: xmm0 to xmm15, and xmm16 to xmm31 */
    XMM16 = 67,
};

/* def_cfa rsp, 8; offset return address, CFA - 8 */
static const uint8_t entry_rules[] = {CFA_def_cfa, JITDUMP_RSP, WORD, CFA_offset | JITDUMP_RIP, 1};

static bool has_pointer(const struct jitdump_frame *frame)
{
    return frame->kind == JITDUMP_FRAME_POINTER;
}

static bool has_red_zone(const struct jitdump_frame *frame)
{
    return frame->flags & JITDUMP_FRAME_RED_ZONE;
}

static const char *check_red_zone(const struct jitdump_frame *frame)
{
    if (!has_pointer(frame))
        return "JITDUMP_FRAME_RED_ZONE without a frame pointer";
    if (frame->flags & JITDUMP_FRAME_DYNAMIC)
        return "JITDUMP_FRAME_RED_ZONE with JITDUMP_FRAME_DYNAMIC, which it includes";
    return frame->saved_count ? "JITDUMP_FRAME_RED_ZONE with pushed registers" : NULL;
}

static int dwarf_register(unsigned encoding, bool vector)
{
    static const uint8_t numbers[] = {JITDUMP_RAX, JITDUMP_RCX, JITDUMP_RDX, JITDUMP_RBX,
                                      JITDUMP_RSP, JITDUMP_RBP, JITDUMP_RSI, JITDUMP_RDI};
    if (encoding >= (vector ? 32 : 16))
        return -1;
    if (vector)
        return (int)encoding + (encoding < 16 ? XMM0 : XMM16 - 16);
    return encoding < 8 ? numbers[encoding] : (int)encoding;
}

static const char *check(const struct jitdump_frame *frame)
{
    if (frame->flags & JITDUMP_FRAME_MOV_POP && !(frame->flags & JITDUMP_FRAME_DYNAMIC))
        return "JITDUMP_FRAME_MOV_POP without JITDUMP_FRAME_DYNAMIC";
    if (has_red_zone(frame) && check_red_zone(frame))
        return check_red_zone(frame);
    for (uint32_t i = 0; i < frame->saved_count; i++)
        if (frame->saved[i] >= JITDUMP_RIP || frame->saved[i] == JITDUMP_RSP ||
            (frame->saved[i] == JITDUMP_RBP && has_pointer(frame)))
            return "a saved register that can't be one";
    return frame->stack_bytes > STACK_BYTES_MAX ? "stack_bytes doesn't fit in 31 bits" : NULL;
}

/* The length of push, and of pop. */
static uint64_t push_bytes(uint8_t reg)
{
    return reg >= JITDUMP_R8 ? 2 : 1;
}

/* The length of sub rsp, and of add rsp. */
static uint64_t sub_bytes(const struct jitdump_frame *frame)
{
    if (frame->stack_bytes == 0)
        return 0;
    return frame->stack_bytes > INT8_MAX || frame->flags & JITDUMP_FRAME_IMM32 ? 7 : 4;
}

/* From the first saved register up to the CFA. */
static int64_t above_saved(const struct jitdump_frame *frame)
{
    return has_pointer(frame) ? 2 * WORD : WORD;
}

/* ---- Slots ---- */

/* With a red zone the topmost word of the stack_bytes is rbp's. */
static struct cfi_room slot_room(const struct jitdump_frame *frame)
{
    int64_t end = has_pointer(frame) ? -WORD * (int64_t)frame->saved_count : frame->stack_bytes;
    return (struct cfi_room){end - frame->stack_bytes + (has_red_zone(frame) ? WORD : 0), end};
}

static bool may_be_in_slot(const struct jitdump_frame *frame, uint32_t reg)
{
    return reg < JITDUMP_RIP && reg != JITDUMP_RSP && !(reg == JITDUMP_RBP && has_pointer(frame));
}

/* The length of a slot's store, and of its load. */
static uint64_t slot_bytes(const struct jitdump_frame *frame, const struct jitdump_slot *slot)
{
    bool wide =
        slot->offset < INT8_MIN || slot->offset > INT8_MAX || frame->flags & JITDUMP_FRAME_IMM32;
    if (has_pointer(frame))
        return wide ? 7 : 4;
    return wide ? 8 : slot->offset ? 5 : 4;
}

/* From the CFA. */
static int64_t slot_offset(const struct jitdump_frame *frame, const struct jitdump_slot *slot)
{
    int64_t pushed = WORD * (int64_t)frame->saved_count;
    return slot->offset - (has_pointer(frame) ? 2 * WORD : WORD + pushed + frame->stack_bytes);
}

static uint64_t store_slots(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at)
{
    at = cfi_slots_at(cfi, frame, at);
    for (size_t i = 0; i < frame->slot_count; i++) {
        at += slot_bytes(frame, &frame->slots[i]);
        jitdump_cfi_offset(cfi, at, frame->slots[i].reg, slot_offset(frame, &frame->slots[i]));
    }
    return at;
}

static uint64_t load_slots(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at)
{
    for (size_t i = 0; i < frame->slot_count; i++) {
        at += slot_bytes(frame, &frame->slots[i]);
        jitdump_cfi_restore(cfi, at, frame->slots[i].reg);
    }
    return at;
}

/* ---- A frame pointer ---- */

/* Until rbp has changed, it has the slot's value as well.  A copy of the stack from rsp upwards
 * does not have the slot. */
static uint64_t store_pointer(struct jitdump_cfi *cfi, uint64_t at)
{
    at += 2 * RED_ZONE_MOV_BYTES;
    jitdump_cfi_def_cfa(cfi, at, JITDUMP_RBP, 2 * WORD);
    jitdump_cfi_offset(cfi, at, JITDUMP_RBP, -2 * WORD);
    return at;
}

static uint64_t load_pointer(struct jitdump_cfi *cfi, uint64_t at)
{
    at += LEA_RSP_BYTES;
    jitdump_cfi_def_cfa(cfi, at, JITDUMP_RSP, WORD);
    at += RED_ZONE_MOV_BYTES;
    jitdump_cfi_restore(cfi, at, JITDUMP_RBP);
    return at;
}

static uint64_t push_pointer(struct jitdump_cfi *cfi, uint64_t at)
{
    at += PUSH_RBP_BYTES;
    jitdump_cfi_def_cfa_offset(cfi, at, 2 * WORD);
    jitdump_cfi_offset(cfi, at, JITDUMP_RBP, -2 * WORD);
    at += MOV_RBP_RSP_BYTES;
    jitdump_cfi_def_cfa_register(cfi, at, JITDUMP_RBP);
    return at;
}

static uint64_t prologue(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at)
{
    int64_t cfa = above_saved(frame);
    if (frame->flags & JITDUMP_FRAME_LANDING_PAD)
        at += ENDBR64_BYTES;
    if (has_pointer(frame))
        at = has_red_zone(frame) ? store_pointer(cfi, at) : push_pointer(cfi, at);
    for (uint32_t i = 0; i < frame->saved_count; i++) {
        at += push_bytes(frame->saved[i]);
        cfa += WORD;
        if (!has_pointer(frame))
            jitdump_cfi_def_cfa_offset(cfi, at, cfa);
        jitdump_cfi_offset(cfi, at, frame->saved[i], -cfa);
    }
    at += sub_bytes(frame);
    if (!has_pointer(frame) && frame->stack_bytes)
        jitdump_cfi_def_cfa_offset(cfi, at, cfa + frame->stack_bytes);
    return store_slots(cfi, frame, at);
}

static uint64_t pop_saved(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at)
{
    int64_t cfa = above_saved(frame) + WORD * (int64_t)frame->saved_count;
    if (!has_pointer(frame) && frame->stack_bytes)
        jitdump_cfi_def_cfa_offset(cfi, at, cfa);
    for (uint32_t i = frame->saved_count; i-- > 0;) {
        at += push_bytes(frame->saved[i]);
        cfa -= WORD;
        if (!has_pointer(frame))
            jitdump_cfi_def_cfa_offset(cfi, at, cfa);
        /* A profiler that has a copy of the stack has it from rsp upwards: what was popped is not
         * in it. */
        jitdump_cfi_restore(cfi, at, frame->saved[i]);
    }
    return at;
}

static uint64_t pop_pointer(struct jitdump_cfi *cfi, uint64_t at)
{
    jitdump_cfi_def_cfa(cfi, at, JITDUMP_RSP, WORD);
    jitdump_cfi_restore(cfi, at, JITDUMP_RBP);
    return at;
}

static uint64_t epilogue(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at)
{
    bool dynamic = frame->flags & JITDUMP_FRAME_DYNAMIC;
    at = load_slots(cfi, frame, at);
    if (has_red_zone(frame))
        return load_pointer(cfi, at);
    if (dynamic && frame->saved_count == 0)
        return pop_pointer(cfi, at + (frame->flags & JITDUMP_FRAME_MOV_POP
                                          ? MOV_RBP_RSP_BYTES + PUSH_RBP_BYTES
                                          : LEAVE_BYTES));
    at = pop_saved(cfi, frame, at + (dynamic ? LEA_RSP_BYTES : sub_bytes(frame)));
    return has_pointer(frame) ? pop_pointer(cfi, at + PUSH_RBP_BYTES) : at;
}

static void entered(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at)
{
    int64_t cfa = above_saved(frame) + WORD * (int64_t)frame->saved_count + frame->stack_bytes;
    if (has_pointer(frame)) {
        jitdump_cfi_def_cfa(cfi, at, JITDUMP_RBP, 2 * WORD);
        jitdump_cfi_offset(cfi, at, JITDUMP_RBP, -2 * WORD);
    } else {
        jitdump_cfi_def_cfa_offset(cfi, at, cfa);
    }
    for (uint32_t i = 0; i < frame->saved_count; i++)
        jitdump_cfi_offset(cfi, at, frame->saved[i], -above_saved(frame) - WORD * (int64_t)(i + 1));
    for (size_t i = 0; i < frame->slot_count; i++)
        jitdump_cfi_offset(cfi, at, frame->slots[i].reg, slot_offset(frame, &frame->slots[i]));
}

const struct cfi_arch jd_cfi_x86_64 = {
    .arch = JITDUMP_X86_64,
    .cie = {.code_align = 1,
            .data_align = -WORD,
            .return_register = JITDUMP_RIP,
            .instructions = entry_rules,
            .instructions_bytes = sizeof entry_rules},
    .cfa_offset = WORD,
    .leave_bytes = 1,
    .check = check,
    .dwarf_register = dwarf_register,
    .slot_room = slot_room,
    .may_be_in_slot = may_be_in_slot,
    .prologue = prologue,
    .epilogue = epilogue,
    .entered = entered,
};
