/* The description of an architecture for the builder of unwind tables: one entry each, in a file of
 * its own.
 *
 * To add a machine, add three things.  In cfi.h: its number, its registers and the instructions of
 * its frames.  In jitdump/cfi/cfi_NAME.c: its entry, which is declared below.  In cfi_arches: a
 * line.  To check its frames too: a machine in jitdump/instructions (code_step.h).
 *
 * The functions describe by the public directives of cfi.h, at code offset AT, and return the
 * offset after the instructions that they describe.  With a NULL builder the directives do
 * nothing, which yields just the lengths.  FRAME has passed `check`, and is a leaf only in
 * `prologue`.
 */
#ifndef CFI_ARCH_H
#define CFI_ARCH_H

#include "jitdump/cfi.h"
#include "jitdump/format/cfa_opcode.h"
#include "jitdump/format/eh_frame.h"

enum { CFI_SLOT_BYTES = 8 };

struct cfi_room {
    int64_t start, end;
};

struct cfi_arch {
    enum jitdump_arch arch;
    struct eh_cie cie;  /* the rules at a function's first instruction */
    int64_t cfa_offset; /* of those rules */

    /* By how much an instruction after a ret lies after it, at least. */
    uint64_t leave_bytes;

    /* The error in FRAME, or NULL.  Slots are checked in cfi_check_frame. */
    const char *(*check)(const struct jitdump_frame *frame);

    /* The DWARF number of the register with this number in instructions, or -1. */
    int (*dwarf_register)(unsigned encoding, bool vector);

    /* The offsets at which the slots of FRAME may lie; the room ends at a multiple of 8 from the
     * CFA.
     */
    struct cfi_room (*slot_room)(const struct jitdump_frame *frame);
    bool (*may_be_in_slot)(const struct jitdump_frame *frame, uint32_t reg);

    uint64_t (*prologue)(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at);

    /* All but the instruction that leaves the function. */
    uint64_t (*epilogue)(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at);

    /* The state between prologue and epilogue, for a block that begins in it. */
    void (*entered)(struct jitdump_cfi *cfi, const struct jitdump_frame *frame, uint64_t at);
};

extern const struct cfi_arch jd_cfi_x86_64;
extern const struct cfi_arch jd_cfi_aarch64;
extern const struct cfi_arch jd_cfi_riscv64;

/* NULL for a machine that isn't in the table. */
static inline const struct cfi_arch *cfi_arch_of(enum jitdump_arch arch)
{
    static const struct cfi_arch *const cfi_arches[] = {
        &jd_cfi_x86_64,
        &jd_cfi_aarch64,
        &jd_cfi_riscv64,
    };
    for (size_t i = 0; i < sizeof cfi_arches / sizeof cfi_arches[0]; i++)
        if (cfi_arches[i]->arch == arch)
            return cfi_arches[i];
    return NULL;
}

/* The error in the flags of FRAME on machines other than x86-64, or NULL. */
static inline const char *cfi_check_flags(const struct jitdump_frame *frame)
{
    if (frame->flags & JITDUMP_FRAME_IMM32)
        return "JITDUMP_FRAME_IMM32 is for x86-64";
    if (frame->flags & JITDUMP_FRAME_RED_ZONE)
        return "JITDUMP_FRAME_RED_ZONE is for x86-64";
    return frame->flags & JITDUMP_FRAME_MOV_POP ? "JITDUMP_FRAME_MOV_POP is for x86-64" : NULL;
}

/* The offset at which the first slot of FRAME is stored, in a prologue that is at AT.  Without a
 * builder, where bytes are counted, nothing comes before it. */
static inline uint64_t cfi_slots_at(const struct jitdump_cfi *cfi,
                                    const struct jitdump_frame *frame, uint64_t at)
{
    return cfi && frame->slots_at && frame->slot_count ? frame->slots_at : at;
}

/* Whether a saved register is listed twice. */
static inline bool cfi_saved_twice(const struct jitdump_frame *frame)
{
    for (uint32_t i = 0; i < frame->saved_count; i++)
        if (memchr(frame->saved, frame->saved[i], i))
            return true;
    return false;
}

static inline bool cfi_slots_collide(const struct jitdump_slot *a, const struct jitdump_slot *b)
{
    int64_t between = (int64_t)a->offset - b->offset;
    return a->reg == b->reg || (between > -CFI_SLOT_BYTES && between < CFI_SLOT_BYTES);
}

/* The error in the slots of FRAME, or NULL.  They lie in its stack_bytes, each in bytes of its
 * own. */
static inline const char *cfi_check_slots(const struct cfi_arch *arch,
                                          const struct jitdump_frame *frame)
{
    if (frame->slot_count && !frame->slots)
        return "slot_count is set, and slots is NULL";
    if (frame->slot_count > JITDUMP_FRAME_SLOTS_MAX)
        return "more slots than it can have";
    if (frame->slot_count && frame->kind == JITDUMP_FRAME_LEAF)
        return "a leaf with slots";
    const struct cfi_room room = arch->slot_room(frame);
    for (size_t i = 0; i < frame->slot_count; i++) {
        const struct jitdump_slot *slot = &frame->slots[i];
        if (!arch->may_be_in_slot(frame, slot->reg))
            return "a register in a slot that can't be in one";
        if (memchr(frame->saved, (int)slot->reg, frame->saved_count))
            return "a register saved twice";
        if (slot->offset < room.start || (int64_t)slot->offset + CFI_SLOT_BYTES > room.end)
            return "a slot outside of stack_bytes";
        if ((room.end - slot->offset) % CFI_SLOT_BYTES)
            return "a slot that is not at a multiple of 8 from the CFA";
        for (size_t k = 0; k < i; k++)
            if (cfi_slots_collide(slot, &frame->slots[k]))
                return "two slots of one register, or that overlap";
    }
    return NULL;
}

/* The error in FRAME for ARCH, or NULL. */
static inline const char *cfi_check_frame(const struct cfi_arch *arch,
                                          const struct jitdump_frame *frame)
{
    const uint32_t known = JITDUMP_FRAME_ENTERED | JITDUMP_FRAME_LANDING_PAD |
                           JITDUMP_FRAME_DYNAMIC | JITDUMP_FRAME_IMM32 | JITDUMP_FRAME_RED_ZONE |
                           JITDUMP_FRAME_MOV_POP;
    if ((unsigned)frame->kind > JITDUMP_FRAME_STACK || frame->flags & ~known)
        return "unknown kind or flag";
    if (frame->saved_count > JITDUMP_FRAME_SAVED_MAX)
        return "more saved registers than it can hold";
    if (frame->kind == JITDUMP_FRAME_LEAF && (frame->saved_count || frame->stack_bytes))
        return "a leaf with saved registers or stack_bytes";
    if (frame->flags & JITDUMP_FRAME_DYNAMIC && frame->kind != JITDUMP_FRAME_POINTER)
        return "JITDUMP_FRAME_DYNAMIC without a frame pointer";
    if (cfi_saved_twice(frame))
        return "a register saved twice";
    const char *wrong = arch->check(frame);
    return wrong ? wrong : cfi_check_slots(arch, frame);
}

#endif
