/* See frame_rule.h.  Source: DWARF 5, section 6.4.2. */
#include "jitunwind/frames/frame_rule.h"

#include "jitdump/format/cfa_opcode.h"

enum {
    CFA_def_cfa_expression = 0x0f,
    CFA_expression = 0x10,
    CFA_val_expression = 0x16,
    CFA_negate_ra_state_with_pc = 0x2c,
    CFA_negate_ra_state = 0x2d,
    CFA_args_size = 0x2e,
    CFA_negative_offset_extended = 0x2f,
    WORD = 8,
    NO_SLOT = MACHINE_SAVED,
};

static unsigned slot_of(uint64_t reg)
{
    unsigned slot = 0;
    while (slot < NO_SLOT && machine_saved[slot] != reg)
        slot++;
    return slot;
}

/* Registers that nobody unwinds with go nowhere. */
static void set_slot(struct frame_run *run, uint64_t reg, int16_t value)
{
    unsigned slot = slot_of(reg);
    if (slot != NO_SLOT)
        run->now.slots[slot] = value;
}

static void set_offset(struct frame_run *run, uint64_t reg, int64_t factored)
{
    int64_t offset;
    if (__builtin_mul_overflow(factored, run->entry->data_align, &offset) || offset % WORD ||
        offset / WORD >= SLOT_SAME || offset / WORD <= SLOT_UNKNOWN)
        set_slot(run, reg, SLOT_UNKNOWN);
    else
        set_slot(run, reg, (int16_t)(offset / WORD));
}

static void restore(struct frame_run *run, uint64_t reg)
{
    unsigned slot = slot_of(reg);
    if (slot != NO_SLOT)
        run->now.slots[slot] = run->initial.slots[slot];
}

static void set_cfa(struct frame_run *run, uint64_t reg, int64_t offset)
{
    bool fits = reg < MACHINE_REGISTERS && offset == (int32_t)offset;
    run->now.kind = fits ? RULE_OFFSET : RULE_UNKNOWN;
    run->now.cfa_register = fits ? (uint8_t)reg : 0;
    run->now.cfa_offset = fits ? (int32_t)offset : 0;
}

static void set_cfa_factored(struct frame_run *run, uint64_t reg, int64_t factored)
{
    int64_t offset;
    if (__builtin_mul_overflow(factored, run->entry->data_align, &offset))
        offset = INT64_MAX;
    set_cfa(run, reg, offset);
}

static void skip_block(struct byte_cursor *program)
{
    uint64_t size = cursor_uleb(program);
    cursor_skip(program, size <= cursor_left(program) ? (size_t)size : SIZE_MAX);
}

/* What linkers write for the procedure linkage table; all other expressions are left to frame
 * pointers: DW_OP_breg7 8, breg16 0, lit15, and, lit11 (or another), ge, lit3, shl, plus. */
static void set_cfa_expression(struct frame_run *run)
{
    enum { LIT = 6, LIT0 = 0x30 };
    static const uint8_t plt[] = {0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
    uint64_t size = cursor_uleb(&run->program);
    const uint8_t *bytes =
        cursor_bytes(&run->program, size <= cursor_left(&run->program) ? (size_t)size : SIZE_MAX);
    bool is_plt = MACHINE_REGISTERS == 17 && bytes && size == sizeof plt &&
                  memcmp(bytes, plt, LIT) == 0 && bytes[LIT] >= LIT0 && bytes[LIT] <= LIT0 + 15 &&
                  memcmp(bytes + LIT + 1, plt + LIT + 1, sizeof plt - LIT - 1) == 0;
    run->now.kind = is_plt ? RULE_PLT : RULE_UNKNOWN;
    run->now.cfa_offset = is_plt ? bytes[LIT] - LIT0 : 0;
}

static void remember(struct frame_run *run)
{
    if (run->remembered_count == FRAME_REMEMBERED)
        run->failed = true;
    else
        run->remembered[run->remembered_count++] = run->now;
}

static void recall(struct frame_run *run)
{
    if (run->remembered_count == 0)
        run->failed = true;
    else
        run->now = run->remembered[--run->remembered_count];
}

/* Returns false for what is not about the CFA. */
static bool run_cfa(struct frame_run *run, uint8_t opcode)
{
    struct byte_cursor *program = &run->program;
    uint64_t reg;
    switch (opcode) {
    case CFA_def_cfa:
        reg = cursor_uleb(program);
        set_cfa(run, reg, (int64_t)cursor_uleb(program));
        return true;
    case CFA_def_cfa_sf:
        reg = cursor_uleb(program);
        set_cfa_factored(run, reg, cursor_sleb(program));
        return true;
    case CFA_def_cfa_register:
        set_cfa(run, cursor_uleb(program), run->now.cfa_offset);
        return true;
    case CFA_def_cfa_offset:
        set_cfa(run, run->now.cfa_register, (int64_t)cursor_uleb(program));
        return true;
    case CFA_def_cfa_offset_sf:
        set_cfa_factored(run, run->now.cfa_register, cursor_sleb(program));
        return true;
    case CFA_def_cfa_expression:
        set_cfa_expression(run);
        return true;
    default:
        return false;
    }
}

/* Returns false for what is not about a register. */
static bool run_register(struct frame_run *run, uint8_t opcode)
{
    struct byte_cursor *program = &run->program;
    bool about_register = (opcode >= CFA_offset_extended && opcode <= CFA_register) ||
                          (opcode >= CFA_expression && opcode <= CFA_offset_extended_sf) ||
                          (opcode >= CFA_val_offset && opcode <= CFA_val_expression) ||
                          opcode == CFA_negative_offset_extended;
    if (!about_register)
        return false;
    uint64_t reg = cursor_uleb(program);
    if (opcode == CFA_offset_extended)
        set_offset(run, reg, (int64_t)cursor_uleb(program));
    else if (opcode == CFA_offset_extended_sf)
        set_offset(run, reg, cursor_sleb(program));
    else if (opcode == CFA_negative_offset_extended)
        set_offset(run, reg, (int64_t)(0 - cursor_uleb(program)));
    else if (opcode == CFA_restore_extended)
        restore(run, reg);
    else if (opcode == CFA_undefined)
        set_slot(run, reg, SLOT_UNDEFINED);
    else if (opcode == CFA_same_value)
        set_slot(run, reg, SLOT_SAME);
    else
        set_slot(run, reg, SLOT_UNKNOWN);
    if (opcode == CFA_register || opcode == CFA_val_offset)
        cursor_uleb(program);
    else if (opcode == CFA_val_offset_sf)
        cursor_sleb(program);
    else if (opcode == CFA_expression || opcode == CFA_val_expression)
        skip_block(program);
    return true;
}

static void run_other(struct frame_run *run, uint8_t opcode)
{
    if (opcode == CFA_remember_state)
        remember(run);
    else if (opcode == CFA_restore_state)
        recall(run);
    else if (opcode == CFA_args_size)
        cursor_uleb(&run->program);
    else if (opcode != CFA_nop && opcode != CFA_negate_ra_state &&
             opcode != CFA_negate_ra_state_with_pc)
        run->failed = true;
}

/* How far OPCODE goes on, if it is an advance. */
static bool take_advance(struct frame_run *run, uint8_t opcode, uint64_t *by)
{
    struct byte_cursor *program = &run->program;
    if ((opcode & CFA_restore) == CFA_advance_loc)
        *by = opcode & LOW_SIX_BITS;
    else if (opcode == CFA_advance_loc1)
        *by = cursor_u8(program);
    else if (opcode == CFA_advance_loc2)
        *by = cursor_u16(program);
    else if (opcode == CFA_advance_loc4)
        *by = cursor_u32(program);
    else
        return false;
    run->failed |= __builtin_mul_overflow(*by, run->entry->code_align, by);
    return true;
}

static void run_instruction(struct frame_run *run, uint8_t opcode)
{
    if ((opcode & CFA_restore) == CFA_offset)
        set_offset(run, opcode & LOW_SIX_BITS, (int64_t)cursor_uleb(&run->program));
    else if ((opcode & CFA_restore) == CFA_restore)
        restore(run, opcode & LOW_SIX_BITS);
    else if (!run_cfa(run, opcode) && !run_register(run, opcode))
        run_other(run, opcode);
}

/* Run up to the next advance that changes the location.  Returns by how much, or 0 at the end. */
static uint64_t run_row(struct frame_run *run)
{
    while (cursor_left(&run->program) && !run->failed) {
        uint8_t opcode = cursor_u8(&run->program);
        uint64_t by = 0;
        run->failed |= run->budget == 0 || run->budget-- == 0;
        if (!take_advance(run, opcode, &by))
            run_instruction(run, opcode);
        run->failed |= run->program.failed;
        if (by && !run->failed)
            return by;
    }
    return 0;
}

void ju_frame_run_begin(struct frame_run *run, const struct frame_entry *entry, uint32_t budget)
{
    run->entry = entry;
    run->now = (struct frame_rule){.kind = RULE_UNKNOWN};
    for (unsigned i = 0; i < MACHINE_SAVED; i++)
        run->now.slots[i] = SLOT_SAME;
    run->initial = run->now;
    run->remembered_count = 0;
    run->budget = budget;
    run->offset = 0;
    run->failed = run->ended = false;
    run->program = byte_cursor_over(entry->initial, entry->initial_bytes, false);
    run->failed |= run_row(run) != 0 || entry->return_register != MACHINE_RETURN;
    run->initial = run->now;
    run->program = byte_cursor_over(entry->instructions, entry->instructions_bytes, false);
}

bool ju_frame_run_next(struct frame_run *run, uint64_t *from, uint64_t *to, struct frame_rule *rule)
{
    uint64_t size = run->entry->end - run->entry->start;
    if (run->failed || run->ended || run->offset >= size)
        return false;
    uint64_t by = run_row(run);
    *from = run->offset;
    run->ended = by == 0 || by > size - run->offset;
    run->offset = *to = run->ended ? size : run->offset + by;
    *rule = run->now;
    return !run->failed;
}
