/* Unwind from a step of a trace to the way into the code, by what elfutils says of the tables:
 * registers come from the step, and from then on from the tables; the stack is that of the step and
 * of the calls before it. */
#ifndef PERFJIT_TEST_AARCH64_UNWIND_H
#define PERFJIT_TEST_AARCH64_UNWIND_H

#include "tests/unit/aarch64_trace.h"
#include "tests/unit/single_step_tables.h"

#include <dwarf.h>

struct unwinding {
    const struct trace *trace;
    const struct trace_step *step; /* of this frame: where it is, and the stack */
    uint64_t registers[TRACE_REGISTERS];
    bool known[TRACE_REGISTERS];
    uint64_t cfa; /* as the tables have it */
    size_t level; /* 0: the innermost */
    size_t compared;
    const char *wrong; /* what can't be, or NULL */
    const char *what;  /* after a mistake: of what it is */
    uint64_t found, truth;
    char name[8];
};

static inline uint64_t unwind_fail(struct unwinding *unwinding, const char *wrong)
{
    unwinding->wrong = wrong;
    return 0;
}

static inline uint64_t unwind_memory(struct unwinding *unwinding, uint64_t addr)
{
    const struct trace_step *step = unwinding->step;
    uint64_t offset = addr - step->stack_addr, value;
    if (offset >= step->stack_bytes || step->stack_bytes - offset < sizeof value)
        return unwind_fail(unwinding, "it is looked for outside of the frame");
    memcpy(&value, unwinding->trace->stack + step->stack + offset, sizeof value);
    return value;
}

static inline uint64_t unwind_old(struct unwinding *unwinding, uint64_t reg)
{
    if (reg >= TRACE_REGISTERS || !unwinding->known[reg])
        return unwind_fail(unwinding, "it takes a register that nobody knows");
    return unwinding->registers[reg];
}

/* The few forms that the rules of CFI take in libdw.  *IS_VALUE is cleared where the value is an
 * address of memory. */
static inline uint64_t unwind_op(struct unwinding *unwinding, const Dwarf_Op *op, uint64_t value,
                                 bool *is_value)
{
    *is_value = op->atom == DW_OP_stack_value || op->atom == DW_OP_regx ||
                (op->atom >= DW_OP_reg0 && op->atom < DW_OP_breg0);
    if (op->atom == DW_OP_stack_value)
        return value;
    if (op->atom == DW_OP_regx)
        return unwind_old(unwinding, op->number);
    if (op->atom >= DW_OP_reg0 && op->atom < DW_OP_breg0)
        return unwind_old(unwinding, op->atom - DW_OP_reg0);
    if (op->atom == DW_OP_bregx)
        return unwind_old(unwinding, op->number) + op->number2;
    if (op->atom >= DW_OP_breg0 && op->atom < DW_OP_regx)
        return unwind_old(unwinding, op->atom - DW_OP_breg0) + op->number;
    if (op->atom == DW_OP_call_frame_cfa)
        return unwinding->cfa;
    if (op->atom == DW_OP_plus_uconst)
        return value + op->number;
    return unwind_fail(unwinding, "an operation that is not expected");
}

static inline uint64_t unwind_cfa(struct unwinding *unwinding, Dwarf_Frame *frame)
{
    Dwarf_Op *ops;
    size_t count;
    uint64_t value = 0;
    bool is_value;
    if (dwarf_frame_cfa(frame, &ops, &count) || count == 0)
        return unwind_fail(unwinding, "no CFA");
    for (size_t i = 0; i < count; i++)
        value = unwind_op(unwinding, &ops[i], value, &is_value);
    return value;
}

/* The caller's register REG. */
static inline uint64_t unwind_register(struct unwinding *unwinding, Dwarf_Frame *frame,
                                       unsigned reg)
{
    Dwarf_Op memory[3], *ops;
    size_t count;
    bool is_value = false;
    uint64_t value = 0;
    if (dwarf_frame_register(frame, (int)reg, memory, &ops, &count))
        return unwind_fail(unwinding, "no rule");
    if (count == 0 &&
        !ops) /* by the tables, or because elfutils knows that a function preserves it */
        return unwind_old(unwinding, reg);
    if (count == 0)
        return unwind_fail(unwinding, "undefined");
    for (size_t i = 0; i < count; i++)
        value = unwind_op(unwinding, &ops[i], value, &is_value);
    return is_value || unwinding->wrong ? value : unwind_memory(unwinding, value);
}

/* ---- One frame ---- */

static inline bool unwind_is(struct unwinding *unwinding, const char *what, uint64_t found,
                             uint64_t truth)
{
    unwinding->compared++;
    unwinding->found = found;
    unwinding->truth = truth;
    unwinding->what = what;
    return !unwinding->wrong && found == truth;
}

static inline bool unwind_is_frame(struct unwinding *unwinding, Dwarf_Frame *frame,
                                   const struct trace_frame *truth)
{
    bool signal_frame;
    int return_register = dwarf_frame_info(frame, NULL, NULL, &signal_frame);
    unwinding->cfa = unwind_cfa(unwinding, frame);
    return unwind_is(unwinding, "CFA", unwinding->cfa, truth->cfa) &&
           unwind_is(unwinding, "return register", (uint64_t)return_register, JITDUMP_X30) &&
           unwind_is(unwinding, "signal frame", signal_frame, false) &&
           unwind_is(unwinding, "sp", unwind_register(unwinding, frame, JITDUMP_SP), truth->cfa) &&
           unwind_is(unwinding, "return address", unwind_register(unwinding, frame, JITDUMP_X30),
                     truth->return_addr);
}

static inline bool unwind_is_saved(struct unwinding *unwinding, Dwarf_Frame *frame,
                                   const struct trace_frame *truth, uint64_t saved[TRACE_SAVED])
{
    for (size_t i = 0; i < TRACE_SAVED; i++) {
        unsigned reg = trace_saved(i);
        saved[i] = unwind_register(unwinding, frame, reg);
        snprintf(unwinding->name, sizeof unwinding->name, "%c%u", reg < JITDUMP_D0 ? 'x' : 'd',
                 reg % JITDUMP_D0);
        if (!unwind_is(unwinding, unwinding->name, saved[i], truth->saved[i]))
            return false;
    }
    return true;
}

/* Compare all that FRAME says with the truth, and go to the caller.  Returns false at the first
 * that is wrong. */
static inline bool unwind_one(struct unwinding *unwinding, Dwarf_Frame *frame)
{
    const struct trace_frame *truth = &unwinding->trace->frames[unwinding->step->frame];
    uint64_t saved[TRACE_SAVED];
    if (!unwind_is_frame(unwinding, frame, truth) ||
        !unwind_is_saved(unwinding, frame, truth, saved))
        return false;
    memset(unwinding->known, 0, sizeof unwinding->known);
    for (size_t i = 0; i < TRACE_SAVED; i++) {
        unwinding->registers[trace_saved(i)] = saved[i];
        unwinding->known[trace_saved(i)] = true;
    }
    unwinding->registers[JITDUMP_SP] = unwinding->cfa;
    unwinding->registers[JITDUMP_X30] = truth->return_addr; /* which was found as well */
    unwinding->known[JITDUMP_SP] = unwinding->known[JITDUMP_X30] = true;
    return true;
}

static inline struct unwinding unwind_begin(const struct trace *trace,
                                            const struct trace_step *step)
{
    struct unwinding unwinding = {.trace = trace, .step = step};
    memcpy(unwinding.registers, step->registers, sizeof unwinding.registers);
    for (size_t reg = 0; reg < TRACE_REGISTERS; reg++)
        unwinding.known[reg] = reg <= JITDUMP_SP || reg >= JITDUMP_D8;
    return unwinding;
}

/* Go to the call that opened the frame that was unwound.  Returns false at the way into the code.
 */
static inline bool unwind_next(struct unwinding *unwinding)
{
    size_t call_step = unwinding->trace->frames[unwinding->step->frame].call_step;
    if (call_step == NO_STEP)
        return false;
    unwinding->step = &unwinding->trace->steps[call_step];
    unwinding->level++;
    return true;
}

#endif
