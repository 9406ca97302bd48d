/* Unwind from a step of a trace to the way into the code by perfjit's own rules (injector/unwind),
 * and compare with what calls and returns say. */
#ifndef PERFJIT_TEST_AARCH64_RULES_H
#define PERFJIT_TEST_AARCH64_RULES_H

#include "injector/log/code/code_log.h"
#include "injector/unwind/unwind_rule.h"
#include "tests/unit/aarch64_trace.h"

struct rules_walk {
    const struct trace *trace;
    const struct trace_step *step; /* of this frame: its stack */
    struct unwind_frame frame;
    size_t level;
};

static inline struct rules_walk rules_begin(const struct trace *trace,
                                            const struct trace_step *step)
{
    struct rules_walk walk = {.trace = trace, .step = step};
    walk.frame.pc = step->pc;
    walk.frame.exact = walk.frame.innermost = true;
    for (unsigned reg = 0; reg <= JITDUMP_SP; reg++)
        unwind_frame_set(&walk.frame, reg, step->registers[reg]);
    return walk;
}

static inline uint64_t rules_pc(const struct rules_walk *walk)
{
    return walk->frame.exact ? walk->frame.pc : walk->frame.pc - 1;
}

static inline struct cfi_entry rules_entry(const struct code_log *log, uint32_t index, uint64_t pc)
{
    const struct jit_function *function = &log->functions[index];
    for (uint32_t i = 0; i < function->fde_count; i++) {
        const struct code_fde *fde = &log->fdes[function->first_fde + i];
        const struct eh_cie *cie = &log->cies[fde->cie];
        uint64_t start = function->addr + fde->start;
        if (pc >= start && pc - start < fde->size)
            return (struct cfi_entry){.start = start,
                                      .end = start + fde->size,
                                      .code_align = cie->code_align,
                                      .data_align = cie->data_align,
                                      .return_register = cie->return_register,
                                      .initial = cie->instructions,
                                      .initial_bytes = cie->instructions_bytes,
                                      .instructions = fde->instructions,
                                      .instructions_bytes = fde->instructions_bytes};
    }
    fail_msg("0x%" PRIx64 ": no table", pc);
    return (struct cfi_entry){0};
}

/* Go to the caller, by what LOG has of function INDEX.  Returns whether all that is found is
 * right. */
static inline bool rules_step(struct rules_walk *walk, const struct code_log *log, uint32_t index)
{
    const struct machine *machine = machine_numbered(EM_AARCH64);
    const struct trace_frame *truth = &walk->trace->frames[walk->step->frame];
    const struct user_stack stack = {walk->trace->stack + walk->step->stack, walk->step->stack_addr,
                                     walk->step->stack_bytes};
    struct unwind_budget budget = {10000};
    struct unwind_step step = {.machine = machine, .stack = &stack, .budget = &budget};
    struct cfi_entry entry = rules_entry(log, index, rules_pc(walk));
    struct unwind_rule rule;
    struct cfi_row row;
    if (!cfi_row_find(&entry, rules_pc(walk), machine, &budget, &row))
        return false;
    bool is_short = unwind_rule_shorten(&rule, &row, machine);
    if ((is_short ? unwind_by_rule(&step, &rule, &walk->frame)
                  : unwind_by_row(&step, &row, &walk->frame)) != UNWIND_CALLER)
        return false;
    bool right = walk->frame.pc == truth->return_addr && step.cfa == truth->cfa;
    for (size_t i = 0; i < TRACE_SAVED && trace_saved(i) < JITDUMP_D8; i++)
        right = right && unwind_frame_knows(&walk->frame, trace_saved(i)) &&
                walk->frame.registers[trace_saved(i)] == truth->saved[i];
    return right;
}

/* Go to the call that opened the frame.  Returns false at the way into the code. */
static inline bool rules_next(struct rules_walk *walk)
{
    size_t call_step = walk->trace->frames[walk->step->frame].call_step;
    if (call_step == NO_STEP)
        return false;
    walk->step = &walk->trace->steps[call_step];
    walk->level++;
    return true;
}

#endif
