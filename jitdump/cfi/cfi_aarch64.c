/* aarch64: the canonical frames of cfi.h, which lists their instructions. */
#include "jitdump/cfi/cfi_arch.h"

enum {
    WORD = 8, /* bytes of a saved register */
    PAIR = 2 * WORD,
    STACK_ALIGN = 16,
    INSTRUCTION = 4,
    FIRST_D = JITDUMP_D0,
    LAST_D = JITDUMP_D0 + 31,
    LOW_BITS = 0xfff,           /* the operand of a sub */
    STACK_BYTES_MAX = 0xfffff0, /* what two subs can say */
};

/* def_cfa sp, 0; the return address is in its register, like all others. */
static const uint8_t entry_rules[] = {CFA_def_cfa, JITDUMP_SP, 0};

static bool has_pointer(const struct jitdump_frame *frame)
{
    return frame->kind == JITDUMP_FRAME_POINTER;
}

static bool is_float(uint8_t reg)
{
    return reg >= FIRST_D;
}

static int dwarf_register(unsigned encoding, bool vector)
{
    if (encoding > 31)
        return -1;
    return (int)encoding + (vector ? FIRST_D : 0); /* 31 is sp */
}

static bool can_be_saved(const struct jitdump_frame *frame, uint32_t reg)
{
    uint32_t last = has_pointer(frame) ? JITDUMP_X28 : JITDUMP_X30;
    return reg <= LAST_D && (reg >= FIRST_D || reg <= last);
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
    return frame->stack_bytes > STACK_BYTES_MAX ? "stack_bytes doesn't fit in 24 bits" : NULL;
}

/* The bytes before the first saved register. */
static int64_t below_saved(const struct jitdump_frame *frame)
{
    return has_pointer(frame) ? PAIR : 0;
}

static int64_t area_bytes(const struct jitdump_frame *frame)
{
    int64_t bytes = below_saved(frame) + WORD * (int64_t)frame->saved_count;
    return (bytes + STACK_ALIGN - 1) / STACK_ALIGN * STACK_ALIGN;
}

/* Whether saved register I is stored, and loaded, together with the next one: pairs are formed from
 * the front. */
static bool begins_pair(const struct jitdump_frame *frame, uint32_t i)
{
    bool free = true;
    for (uint32_t j = 0; j < i; j++)
        free = !free || is_float(frame->saved[j]) != is_float(frame->saved[j + 1]);
    return free && i + 1 < frame->saved_count &&
           is_float(frame->saved[i]) == is_float(frame->saved[i + 1]);
}

static void saved_at(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at,
                     uint32_t i)
{
    jitdump_cfi_offset(cfi, at, frame->saved[i],
                       below_saved(frame) + WORD * (int64_t)i - area_bytes(frame));
}

static void pointer_at(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at)
{
    jitdump_cfi_offset(cfi, at, JITDUMP_X29, -area_bytes(frame));
    jitdump_cfi_offset(cfi, at, JITDUMP_X30, WORD - area_bytes(frame));
}

static uint64_t store_pointer(struct jitdump_cfi *cfi, const struct jitdump_frame *frame,
                              uint64_t at)
{
    at += INSTRUCTION; /* stp */
    jitdump_cfi_def_cfa_offset(cfi, at, area_bytes(frame));
    pointer_at(cfi, frame, at);
    at += INSTRUCTION; /* mov */
    jitdump_cfi_def_cfa_register(cfi, at, JITDUMP_X29);
    return at;
}

static uint64_t store_saved(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at)
{
    for (uint32_t i = 0; i < frame->saved_count; i++) {
        bool pair = begins_pair(frame, i);
        at += INSTRUCTION;
        if (i == 0 && !has_pointer(frame))
            jitdump_cfi_def_cfa_offset(cfi, at, area_bytes(frame));
        saved_at(cfi, frame, at, i);
        if (pair)
            saved_at(cfi, frame, at, ++i);
    }
    return at;
}

/* The stack_bytes lie right below the frame pointer, which points to the area. */
static struct cfi_room slot_room(const struct jitdump_frame *frame)
{
    int64_t end = has_pointer(frame) ? 0 : frame->stack_bytes;
    return (struct cfi_room){end - frame->stack_bytes, end};
}

static void slot_at(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at,
                    const struct jitdump_slot *slot)
{
    int64_t from_cfa = area_bytes(frame) + (has_pointer(frame) ? 0 : frame->stack_bytes);
    jitdump_cfi_offset(cfi, at, slot->reg, slot->offset - from_cfa);
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

/* An add or sub of PART, unless it is 0; then LEFT bytes of stack_bytes are allocated. */
static uint64_t move_stack(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at,
                           uint32_t part, uint32_t left)
{
    if (part == 0)
        return at;
    at += INSTRUCTION;
    if (!has_pointer(frame))
        jitdump_cfi_def_cfa_offset(cfi, at, area_bytes(frame) + left);
    return at;
}

static uint64_t prologue(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at)
{
    uint32_t low = frame->stack_bytes & LOW_BITS;
    if (frame->flags & JITDUMP_FRAME_LANDING_PAD)
        at += INSTRUCTION;
    if (has_pointer(frame))
        at = store_pointer(cfi, frame, at);
    at = store_saved(cfi, frame, at);
    at = move_stack(cfi, frame, at, frame->stack_bytes - low, frame->stack_bytes - low);
    return store_slots(cfi, frame, move_stack(cfi, frame, at, low, frame->stack_bytes));
}

static uint64_t load_saved(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at)
{
    for (uint32_t i = frame->saved_count; i-- > 0;) {
        bool pair = i > 0 && begins_pair(frame, i - 1);
        at += INSTRUCTION;
        i -= pair;
        if (i == 0 && !has_pointer(frame))
            jitdump_cfi_def_cfa_offset(cfi, at, 0);
        jitdump_cfi_restore(cfi, at, frame->saved[i]);
        if (pair)
            jitdump_cfi_restore(cfi, at, frame->saved[i + 1]);
    }
    return at;
}

static uint64_t epilogue(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at)
{
    uint32_t low = frame->stack_bytes & LOW_BITS;
    at = load_slots(cfi, frame, at);
    if (frame->flags & JITDUMP_FRAME_DYNAMIC) {
        at += INSTRUCTION; /* mov sp, x29 */
    } else {
        at = move_stack(cfi, frame, at, low, frame->stack_bytes - low);
        at = move_stack(cfi, frame, at, frame->stack_bytes - low, 0);
    }
    at = load_saved(cfi, frame, at);
    if (!has_pointer(frame))
        return at;
    at += INSTRUCTION;
    jitdump_cfi_def_cfa(cfi, at, JITDUMP_SP, 0);
    jitdump_cfi_restore(cfi, at, JITDUMP_X29);
    jitdump_cfi_restore(cfi, at, JITDUMP_X30);
    return at;
}

static void entered(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at)
{
    if (has_pointer(frame)) {
        jitdump_cfi_def_cfa(cfi, at, JITDUMP_X29, area_bytes(frame));
        pointer_at(cfi, frame, at);
    } else {
        jitdump_cfi_def_cfa_offset(cfi, at, area_bytes(frame) + frame->stack_bytes);
    }
    for (uint32_t i = 0; i < frame->saved_count; i++)
        saved_at(cfi, frame, at, i);
    for (size_t i = 0; i < frame->slot_count; i++)
        slot_at(cfi, frame, at, &frame->slots[i]);
}

const struct cfi_arch jd_cfi_aarch64 = {
    .arch = JITDUMP_AARCH64,
    .cie = {.code_align = INSTRUCTION,
            .data_align = -WORD,
            .return_register = JITDUMP_X30,
            .instructions = entry_rules,
            .instructions_bytes = sizeof entry_rules},
    .cfa_offset = 0,
    .leave_bytes = INSTRUCTION,
    .check = check,
    .dwarf_register = dwarf_register,
    .slot_room = slot_room,
    .may_be_in_slot = can_be_saved,
    .prologue = prologue,
    .epilogue = epilogue,
    .entered = entered,
};
