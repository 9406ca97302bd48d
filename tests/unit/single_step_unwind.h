/* Unwind one frame from a step of a trace, by what elfutils says of the tables: registers and stack
 * come from the step, and as for a profiler with a copy of the stack, nothing below rsp can be
 * read. */
#ifndef PERFJIT_TEST_SINGLE_STEP_UNWIND_H
#define PERFJIT_TEST_SINGLE_STEP_UNWIND_H

#include "tests/unit/single_step_tables.h"
#include "tests/unit/single_step_trace.h"

#include <dwarf.h>

struct unwinding {
    const struct trace_step *step;
    const uint8_t *stack; /* from rsp up to the true CFA */
    uint64_t cfa;         /* as the tables have it */
    const char *wrong;    /* what can't be, or NULL */
};

static inline uint64_t unwind_fail(struct unwinding *unwinding, const char *wrong)
{
    unwinding->wrong = wrong;
    return 0;
}

static inline uint64_t unwind_memory(struct unwinding *unwinding, uint64_t addr)
{
    const struct trace_step *step = unwinding->step;
    uint64_t rsp = step->registers[JITDUMP_RSP], value;
    if (addr < rsp || addr + sizeof value > step->truth.cfa)
        return unwind_fail(unwinding, "it is looked for outside of the frame");
    memcpy(&value, unwinding->stack + (addr - rsp), sizeof value);
    return value;
}

/* The few forms that the rules of CFI take in libdw. */
static inline uint64_t unwind_op(struct unwinding *unwinding, const Dwarf_Op *op, uint64_t value)
{
    const uint64_t *registers = unwinding->step->registers;
    if (op->atom == DW_OP_bregx && op->number < TRACE_REGISTERS)
        return registers[op->number] + op->number2;
    if (op->atom >= DW_OP_breg0 && op->atom < DW_OP_breg0 + TRACE_REGISTERS)
        return registers[op->atom - DW_OP_breg0] + op->number;
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
    if (dwarf_frame_cfa(frame, &ops, &count) || count == 0)
        return unwind_fail(unwinding, "no CFA");
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value = unwind_op(unwinding, &ops[i], value);
    return value;
}

/* The caller's register REG. */
static inline uint64_t unwind_register(struct unwinding *unwinding, Dwarf_Frame *frame,
                                       unsigned reg)
{
    Dwarf_Op memory[3], *ops;
    size_t count;
    if (dwarf_frame_register(frame, (int)reg, memory, &ops, &count))
        return unwind_fail(unwinding, "no rule");
    /* Of registers that a table doesn't name, elfutils 0.188 knows that a function preserves them;
     * but where it should have rbx in that list, it has rax. */
    if (count == 0 && (!ops || reg == JITDUMP_RBX))
        return reg < TRACE_REGISTERS ? unwinding->step->registers[reg]
                                     : unwind_fail(unwinding, "same value, and it has none");
    if (count == 0)
        return unwind_fail(unwinding, "undefined");
    bool is_value = ops[count - 1].atom == DW_OP_stack_value;
    uint64_t value = 0;
    for (size_t i = 0; i < count - is_value; i++)
        value = unwind_op(unwinding, &ops[i], value);
    return is_value || unwinding->wrong ? value : unwind_memory(unwinding, value);
}

/* One value of the frame: is it right? */
struct unwind_answer {
    const char *what;
    const char *wrong;
    uint64_t found, truth;
};

static inline bool unwind_is(struct unwinding *unwinding, struct unwind_answer *answer,
                             const char *what, uint64_t found, uint64_t truth)
{
    *answer = (struct unwind_answer){what, unwinding->wrong, found, truth};
    return !unwinding->wrong && found == truth;
}

/* Compare all that FRAME says at STEP with the truth.  Returns false, with *ANSWER set, at the
 * first that is wrong. */
static inline bool unwind_check(const struct trace *trace, const struct trace_step *step,
                                Dwarf_Frame *frame, struct unwind_answer *answer)
{
    static const char *const names[TRACE_SAVED] = {"rbx", "rbp", "r12", "r13", "r14", "r15"};
    struct unwinding unwinding = {.step = step, .stack = trace->stack + step->stack};
    const struct trace_frame *truth = &step->truth;
    bool signal_frame;
    int return_register = dwarf_frame_info(frame, NULL, NULL, &signal_frame);
    unwinding.cfa = unwind_cfa(&unwinding, frame);
    if (!unwind_is(&unwinding, answer, "CFA", unwinding.cfa, truth->cfa) ||
        !unwind_is(&unwinding, answer, "return register", (uint64_t)return_register, JITDUMP_RIP) ||
        !unwind_is(&unwinding, answer, "signal frame", signal_frame, false) ||
        !unwind_is(&unwinding, answer, "rsp", unwind_register(&unwinding, frame, JITDUMP_RSP),
                   truth->cfa) ||
        !unwind_is(&unwinding, answer, "return address",
                   unwind_register(&unwinding, frame, JITDUMP_RIP), truth->return_addr))
        return false;
    for (size_t i = 0; i < TRACE_SAVED; i++)
        if (!unwind_is(&unwinding, answer, names[i],
                       unwind_register(&unwinding, frame, trace_saved[i]), truth->saved[i]))
            return false;
    return true;
}

#endif
