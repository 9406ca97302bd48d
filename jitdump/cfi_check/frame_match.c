/* See frame_match.h. */
#include "jitdump/cfi_check/frame_match.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Rows ---- */

bool jd_frame_is_entry(const struct code_machine *machine, const struct frame_row *row)
{
    bool on_stack = machine->entry_offset != 0; /* the return address */
    if (!row->covered || !row->cfa_known || row->cfa_register != machine->stack_pointer ||
        row->cfa_offset != -machine->entry_offset)
        return false;
    for (unsigned i = 0; i < machine->saved_count; i++) {
        const struct frame_rule *rule = &row->rules[i];
        bool expected = on_stack && machine->saved[i] == machine->return_address
                            ? rule->kind == RULE_AT && rule->offset == machine->entry_offset
                            : rule->kind == RULE_SAME;
        if (!expected)
            return false;
    }
    return true;
}

bool jd_frame_rows_equal(const struct code_machine *machine, const struct frame_row *a,
                         const struct frame_row *b)
{
    if (a->covered != b->covered || a->cfa_known != b->cfa_known ||
        a->cfa_register != b->cfa_register || a->cfa_offset != b->cfa_offset ||
        a->address_signed != b->address_signed)
        return false;
    for (unsigned i = 0; i < machine->saved_count; i++)
        if (a->rules[i].kind != b->rules[i].kind || a->rules[i].offset != b->rules[i].offset ||
            a->rules[i].reg != b->rules[i].reg)
            return false;
    return true;
}

static void enter_by_call(const struct code_machine *machine, struct code_state *state)
{
    jd_state_begin(state, machine->stack_pointer, machine->entry_offset);
    if (machine->entry_offset)
        jd_state_store(state, value_frame(machine->entry_offset), 8,
                       value_entry(machine->return_address));
}

/* The row's saved registers are taken for true, and the others are unknown.
 */
static void enter_inside(const struct code_machine *machine, const struct frame_row *row,
                         struct code_state *state)
{
    jd_state_begin(state, machine->stack_pointer, 0);
    for (unsigned reg = 0; reg < CODE_REGISTERS; reg++)
        state->registers[reg] = value_unknown();
    for (unsigned i = 0; i < machine->saved_count; i++) {
        const struct frame_rule *rule = &row->rules[i];
        if (rule->kind == RULE_SAME)
            state->registers[machine->saved[i]] = value_entry(machine->saved[i]);
        else if (rule->kind == RULE_AT)
            jd_state_store(state, value_frame(rule->offset), 8, value_entry(machine->saved[i]));
    }
    if (row->covered && row->cfa_known)
        state->registers[row->cfa_register] = value_frame(-row->cfa_offset);
    state->foreign = true;
    state->exposed = true;
    state->signing = row->address_signed ? ADDRESS_SIGNED : ADDRESS_PLAIN;
}

void jd_frame_entry_state(const struct code_machine *machine, const struct frame_row *row,
                          struct code_state *state)
{
    if (jd_frame_is_entry(machine, row))
        enter_by_call(machine, state);
    else
        enter_inside(machine, row, state);
}

/* ---- The CFA ---- */

__attribute__((format(printf, 2, 3))) static enum frame_match wrong(char *reason,
                                                                    const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, MATCH_TEXT_BYTES, format, arguments);
    va_end(arguments);
    return MATCH_WRONG;
}

/* REG holds CFA + VALUE's offset; the row says otherwise. */
static enum frame_match wrong_cfa(const struct code_machine *machine, const struct frame_row *row,
                                  unsigned reg, struct code_value value, char *reason)
{
    return wrong(reason, "the CFA is %s%+d here, the frame says %s%+d", machine->names[reg],
                 -value.offset, machine->names[row->cfa_register], row->cfa_offset);
}

static bool is_saved(const struct code_machine *machine, unsigned reg)
{
    return memchr(machine->saved, (int)reg, machine->saved_count);
}

static enum frame_match match_cfa(const struct code_machine *machine, const struct frame_row *row,
                                  struct code_state *state, char *reason)
{
    unsigned sp = machine->stack_pointer, reg = row->cfa_register;
    if (!row->cfa_known) /* there may be no such register */
        return MATCH_UNKNOWN;
    struct code_value value = state->registers[reg], top = state->registers[sp];
    bool fits = value.kind == VALUE_FRAME && value.offset == -row->cfa_offset;
    bool elsewhere = value.kind == VALUE_ENTRY && !is_saved(machine, reg);
    if (value.kind == VALUE_UNKNOWN || elsewhere) /* longjmp has such a one */
        return MATCH_UNKNOWN;
    if (reg == sp && state->doubtful) {
        state->doubtful = false;
        state->registers[sp] = fits ? value : value_unknown();
        return fits ? MATCH_FITS : MATCH_UNKNOWN;
    }
    if (fits)
        return MATCH_FITS;
    if (value.kind == VALUE_FRAME)
        return wrong_cfa(machine, row, reg, value, reason);
    if (top.kind == VALUE_FRAME && !state->doubtful)
        return wrong_cfa(machine, row, sp, top, reason);
    return wrong(reason, "the frame says that the CFA is %s%+d, and %s is the caller's here",
                 machine->names[reg], row->cfa_offset, machine->names[reg]);
}

/* ---- Saved registers ---- */

/* The slot on the stack that has the caller's REG, above the stack pointer; NULL: none that is
 * known. */
static const struct code_slot *find_saved(const struct code_state *state, unsigned reg)
{
    struct code_value top = state->registers[state->stack_pointer];
    for (unsigned i = 0; i < state->slot_count; i++)
        if (value_is_entry(state->slots[i].value, reg) &&
            (top.kind != VALUE_FRAME || state->doubtful || state->slots[i].offset >= top.offset))
            return &state->slots[i];
    return NULL;
}

static enum frame_match match_slot(const struct code_machine *machine, unsigned reg, int32_t offset,
                                   const struct code_state *state, char *reason)
{
    struct code_value there = jd_state_load(state, value_frame(offset));
    const struct code_slot *slot = find_saved(state, reg);
    bool in_place = value_is_entry(state->registers[reg], reg);
    if (value_is_entry(there, reg))
        return MATCH_FITS;
    if (there.kind == VALUE_UNKNOWN &&
        !(jd_state_never_written(state, offset) && offset < 0 && (slot || in_place)))
        return MATCH_UNKNOWN;
    if (slot)
        return wrong(reason, "the caller's %s is at c%+d here, the frame says c%+d",
                     machine->names[reg], slot->offset, offset);
    if (in_place)
        return wrong(reason, "%s is not saved here, the frame says at c%+d", machine->names[reg],
                     offset);
    return wrong(reason, "what is at c%+d here is not the caller's %s, as the frame says", offset,
                 machine->names[reg]);
}

static enum frame_match match_register(const struct code_machine *machine, unsigned reg,
                                       const struct frame_rule *rule, struct code_state *state,
                                       char *reason)
{
    struct code_value where;
    switch (rule->kind) {
    case RULE_AT:
        return match_slot(machine, reg, rule->offset, state, reason);
    case RULE_REGISTER:
        where = rule->reg < CODE_REGISTERS ? state->registers[rule->reg] : value_unknown();
        if (where.kind == VALUE_UNKNOWN)
            return MATCH_UNKNOWN;
        return value_is_entry(where, reg)
                   ? MATCH_FITS
                   : wrong(reason, "the caller's %s is not in %s, as the frame says",
                           machine->names[reg], machine->names[rule->reg]);
    case RULE_SAME:
        if (!value_is_entry(state->registers[reg], reg) && find_saved(state, reg))
            state->lost |= UINT64_C(1) << reg;
        return MATCH_FITS;
    default:
        return MATCH_UNKNOWN;
    }
}

static enum frame_match match_signing(const struct frame_row *row, const struct code_state *state,
                                      char *reason)
{
    if (state->signing == ADDRESS_UNSURE || row->address_signed == (state->signing != 0))
        return MATCH_FITS;
    return wrong(reason, state->signing == ADDRESS_SIGNED
                             ? "the return address is signed here, the frame does not say so"
                             : "the return address is not signed here, the frame says that it is");
}

/* Whether the frame is gone, the return address with it: V8 pops that to a register, removes its
 * caller's arguments, and pushes it again, in two instructions of which its tables say nothing. */
static bool is_gone(const struct code_machine *machine, const struct code_state *state)
{
    struct code_value top = state->registers[machine->stack_pointer];
    return top.kind == VALUE_FRAME && top.offset > machine->entry_offset;
}

/* Whether the row says that nobody called this: the begin of a thread. */
static bool is_outermost(const struct code_machine *machine, const struct frame_row *row)
{
    for (unsigned i = 0; i < machine->saved_count; i++)
        if (machine->saved[i] == machine->return_address)
            return row->rules[i].kind == RULE_OTHER;
    return false;
}

enum frame_match jd_frame_match(const struct code_machine *machine, const struct frame_row *row,
                                struct code_state *state, char *reason)
{
    if (is_outermost(machine, row) || is_gone(machine, state))
        return MATCH_UNKNOWN;
    enum frame_match all = match_cfa(machine, row, state, reason);
    for (unsigned i = 0; i < machine->saved_count && all != MATCH_WRONG; i++)
        if (match_register(machine, machine->saved[i], &row->rules[i], state, reason) ==
            MATCH_WRONG)
            all = MATCH_WRONG;
    if (all != MATCH_WRONG && match_signing(row, state, reason) == MATCH_WRONG)
        all = MATCH_WRONG;
    return all;
}

uint64_t jd_frame_given_back(const struct code_machine *machine, const struct code_state *state)
{
    uint64_t given = 0;
    for (unsigned i = 0; i < machine->saved_count; i++)
        if (value_is_entry(state->registers[machine->saved[i]], machine->saved[i]))
            given |= UINT64_C(1) << machine->saved[i];
    return given & state->lost;
}
