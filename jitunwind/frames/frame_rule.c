/* See frame_rule.h.  Source: DWARF 5, section 6.4.2. */
#include "jitunwind/frames/frame_rule.h"

enum { WORD = 8, NO_SLOT = MACHINE_SAVED };

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

static void set_offset(struct frame_run *run, uint64_t reg, int64_t offset)
{
    if (offset % WORD || offset / WORD >= SLOT_SAME || offset / WORD <= SLOT_UNKNOWN)
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

/* The form that linkers write for the procedure linkage table.  All other expressions are left to
 * frame pointers.  The form is DW_OP_breg7 8, breg16 0, lit15, and, lit11 (or another), ge, lit3,
 * shl, plus. */
static void set_expression(struct frame_rule *rule, const struct cfa_block *expression)
{
    enum { LIT = 6, LIT0 = 0x30 };
    static const uint8_t plt[] = {0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
    const uint8_t *bytes = expression->bytes;
    if (MACHINE_REGISTERS == 17 && expression->size == sizeof plt && memcmp(bytes, plt, LIT) == 0 &&
        bytes[LIT] >= LIT0 && bytes[LIT] <= LIT0 + 15 &&
        memcmp(bytes + LIT + 1, plt + LIT + 1, sizeof plt - LIT - 1) == 0) {
        rule->kind = RULE_PLT;
        rule->cfa_offset = bytes[LIT] - LIT0;
    }
}

/* The rule that the instructions have made so far. */
static void take_rule(const struct frame_run *run, struct frame_rule *rule)
{
    const struct cfa_rule *cfa = &run->cfa;
    *rule = run->now;
    if (cfa->kind == CFA_RULE_EXPRESSION) {
        set_expression(rule, &cfa->expression);
    } else if (cfa->kind == CFA_RULE_OFFSET && cfa->reg < MACHINE_REGISTERS &&
               cfa->offset == (int32_t)cfa->offset) {
        rule->kind = RULE_OFFSET;
        rule->cfa_register = (uint8_t)cfa->reg;
        rule->cfa_offset = (int32_t)cfa->offset;
    }
}

static void remember(struct frame_run *run)
{
    if (run->remembered_count == FRAME_REMEMBERED) {
        run->failed = true;
        return;
    }
    run->remembered_cfas[run->remembered_count] = run->cfa;
    run->remembered[run->remembered_count++] = run->now;
}

static void recall(struct frame_run *run)
{
    if (run->remembered_count == 0) {
        run->failed = true;
        return;
    }
    run->now = run->remembered[--run->remembered_count];
    run->cfa = run->remembered_cfas[run->remembered_count];
}

static void run_instruction(struct frame_run *run, const struct cfa_instruction *instruction)
{
    uint64_t reg = instruction->reg;
    switch (instruction->subject) {
    case CFA_IS_NOTHING:
        break;
    case CFA_IS_CFA:
        run->failed |= !cfa_rule_change(&run->cfa, instruction);
        break;
    case CFA_IS_SAVED_AT:
        set_offset(run, reg, instruction->offset);
        break;
    case CFA_IS_UNDEFINED:
        set_slot(run, reg, SLOT_UNDEFINED);
        break;
    case CFA_IS_SAME:
        set_slot(run, reg, SLOT_SAME);
        break;
    case CFA_IS_RESTORED:
        restore(run, reg);
        break;
    case CFA_IS_REMEMBER:
        remember(run);
        break;
    case CFA_IS_RECALL:
        recall(run);
        break;
    case CFA_IS_SIGNED: /* the return address is stripped in any case */
        run->failed |= !MACHINE_SIGNS;
        break;
    default:
        set_slot(run, reg, SLOT_UNKNOWN);
    }
}

/* Run up to the next advance that changes the location.  Returns by how much, or 0 at the end. */
static uint64_t run_row(struct frame_run *run)
{
    struct cfa_instruction instruction;
    uint64_t by = 0;
    while (by == 0 && !run->failed && cfa_next(&run->decoder, &instruction)) {
        run->failed |= run->budget == 0 || run->budget-- == 0;
        if (instruction.subject == CFA_IS_ADVANCE)
            by = instruction.delta;
        else
            run_instruction(run, &instruction);
    }
    run->failed |= run->decoder.wrong != NULL;
    return run->failed ? 0 : by;
}

static struct cfa_decoder decoder_of(const struct cfi_entry *entry, const uint8_t *program,
                                     size_t size)
{
    return cfa_decoder_over(program, size, false, entry->code_align, entry->data_align);
}

void ju_frame_run_begin(struct frame_run *run, const struct cfi_entry *entry, uint32_t budget)
{
    run->entry = entry;
    run->now = (struct frame_rule){.kind = RULE_UNKNOWN};
    for (unsigned i = 0; i < MACHINE_SAVED; i++)
        run->now.slots[i] = SLOT_SAME;
    run->initial = run->now;
    run->cfa = (struct cfa_rule){.kind = CFA_RULE_NONE};
    run->remembered_count = 0;
    run->budget = budget;
    run->offset = 0;
    run->failed = run->ended = false;
    run->decoder = decoder_of(entry, entry->initial, entry->initial_bytes);
    run->failed |= run_row(run) != 0 || entry->return_register != MACHINE_RETURN;
    run->initial = run->now;
    run->decoder = decoder_of(entry, entry->instructions, entry->instructions_bytes);
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
    take_rule(run, rule);
    return !run->failed;
}
