/* See code_state.h. */
#include "jitdump/instructions/code_state.h"

enum { SLOT_BYTES = 8 };

void jd_state_begin(struct code_state *state, unsigned stack_pointer, int32_t stack_offset)
{
    *state = (struct code_state){.stack_pointer = (uint8_t)stack_pointer};
    for (unsigned reg = 0; reg < CODE_REGISTERS; reg++)
        state->registers[reg] = value_entry(reg);
    state->registers[stack_pointer] = value_frame(stack_offset);
}

/* ---- The stack ---- */

struct code_value jd_state_load(const struct code_state *state, struct code_value address)
{
    if (address.kind == VALUE_FRAME)
        for (unsigned i = 0; i < state->slot_count; i++)
            if (state->slots[i].offset == address.offset)
                return state->slots[i].value;
    return value_unknown();
}

bool jd_state_never_written(const struct code_state *state, int32_t offset)
{
    if (state->foreign || (offset + SLOT_BYTES > state->low && offset < state->high))
        return false;
    for (unsigned i = 0; i < state->slot_count; i++)
        if (state->slots[i].offset > offset - SLOT_BYTES &&
            state->slots[i].offset < offset + SLOT_BYTES)
            return false;
    return true;
}

static void add_written(struct code_state *state, int64_t from, int64_t to)
{
    if (to > INT32_MAX / 2)
        to = INT32_MAX / 2;
    if (state->low == state->high) {
        state->low = (int32_t)from;
        state->high = (int32_t)to;
    }
    state->low = from < state->low ? (int32_t)from : state->low;
    state->high = to > state->high ? (int32_t)to : state->high;
}

static void drop_slot(struct code_state *state, unsigned index)
{
    add_written(state, state->slots[index].offset, state->slots[index].offset + SLOT_BYTES);
    state->slots[index] = state->slots[--state->slot_count];
}

static void drop_overlapping(struct code_state *state, int64_t from, int64_t to)
{
    for (unsigned i = state->slot_count; i-- > 0;)
        if (state->slots[i].offset < to && state->slots[i].offset + SLOT_BYTES > from)
            drop_slot(state, i);
}

void jd_state_store(struct code_state *state, struct code_value address, int64_t width,
                    struct code_value value)
{
    state->exposed |= value.kind == VALUE_FRAME;
    if (address.kind == VALUE_UNKNOWN)
        state->foreign |= state->exposed;
    if (address.kind != VALUE_FRAME)
        return;
    int64_t from = address.offset, to = from + width;
    drop_overlapping(state, from, to);
    if (width == SLOT_BYTES && value.kind != VALUE_UNKNOWN && state->slot_count < CODE_SLOTS)
        state->slots[state->slot_count++] = (struct code_slot){address.offset, value};
    else
        add_written(state, from, to);
}

void jd_state_set(struct code_state *state, unsigned reg, unsigned frame_pointer,
                  struct code_value value)
{
    bool is_stack = reg == state->stack_pointer;
    if (is_stack && value.kind != VALUE_FRAME)
        value = value_unknown();
    bool lost = value.kind == VALUE_UNKNOWN && state->registers[reg].kind == VALUE_FRAME &&
                (is_stack || reg == frame_pointer);
    state->registers[reg] = value;
    state->exposed |= lost || (value.kind == VALUE_FRAME && !is_stack && reg != frame_pointer);
}

void jd_state_call(struct code_state *state)
{
    struct code_value top = state->registers[state->stack_pointer];
    state->foreign |= state->exposed;
    if (top.kind != VALUE_FRAME)
        return;
    for (unsigned i = state->slot_count; i-- > 0;)
        if (state->slots[i].offset < top.offset)
            drop_slot(state, i);
}

/* ---- Two ways to one instruction ---- */

static bool merge_registers(struct code_state *into, const struct code_state *from)
{
    bool changed = false;
    for (unsigned reg = 0; reg < CODE_REGISTERS; reg++)
        if (into->registers[reg].kind != VALUE_UNKNOWN &&
            !value_equal(into->registers[reg], from->registers[reg])) {
            into->registers[reg] = value_unknown();
            changed = true;
        }
    return changed;
}

/* A slot that only one of them has, or that differs, may have been written. */
static bool merge_slots(struct code_state *into, const struct code_state *from)
{
    bool changed = false;
    for (unsigned i = into->slot_count; i-- > 0;)
        if (!value_equal(jd_state_load(from, value_frame(into->slots[i].offset)),
                         into->slots[i].value)) {
            drop_slot(into, i);
            changed = true;
        }
    int32_t low = into->low, high = into->high;
    for (unsigned i = 0; i < from->slot_count; i++)
        if (jd_state_load(into, value_frame(from->slots[i].offset)).kind == VALUE_UNKNOWN)
            add_written(into, from->slots[i].offset, from->slots[i].offset + SLOT_BYTES);
    if (from->low != from->high)
        add_written(into, from->low, from->high);
    return changed || low != into->low || high != into->high;
}

bool jd_state_merge(struct code_state *into, const struct code_state *from)
{
    bool changed = merge_registers(into, from);
    changed |= merge_slots(into, from);
    if (into->signing != from->signing && into->signing != ADDRESS_UNSURE) {
        into->signing = ADDRESS_UNSURE;
        changed = true;
    }
    changed |= (from->foreign && !into->foreign) || (from->doubtful && !into->doubtful) ||
               (from->exposed && !into->exposed) || (from->lost & ~into->lost);
    into->foreign |= from->foreign;
    into->exposed |= from->exposed;
    into->doubtful |= from->doubtful;
    into->lost |= from->lost;
    if (from->popped_at && !into->popped_at) {
        into->popped_at = from->popped_at;
        into->popped_bytes = from->popped_bytes;
        changed = true;
    }
    return changed;
}
