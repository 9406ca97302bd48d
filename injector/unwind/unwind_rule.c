/* See unwind_rule.h. */
#include "injector/unwind/unwind_rule.h"

enum { WORD = 8 };

/* ---- Rules in short ---- */

static bool shorten_slot(int16_t *slot, const struct register_rule *rule)
{
    if (rule->kind == REGISTER_SAME || rule->kind == REGISTER_UNDEFINED) {
        *slot = rule->kind == REGISTER_SAME ? SLOT_SAME : SLOT_UNDEFINED;
        return true;
    }
    *slot = (int16_t)(rule->offset / WORD);
    return rule->kind == REGISTER_AT_OFFSET && rule->offset % WORD == 0 &&
           rule->offset / WORD > SLOT_LOST && rule->offset / WORD < INT16_MAX;
}

static bool is_saved(const struct machine *machine, unsigned reg)
{
    for (size_t i = 0; i < machine->saved_count; i++)
        if (machine->saved[i] == reg)
            return true;
    return false;
}

bool unwind_rule_shorten(struct unwind_rule *rule, const struct cfi_row *row,
                         const struct machine *machine)
{
    *rule = (struct unwind_rule){.kind = RULE_SHORT,
                                 .cfa_register = row->cfa_register,
                                 .signal_frame = row->signal_frame,
                                 .cfa_offset = (int32_t)row->cfa.offset};
    if (row->cfa.kind != REGISTER_IS_OFFSET || row->cfa.offset != rule->cfa_offset ||
        row->return_register != machine->return_register)
        return false;
    for (unsigned i = 0; i < UNWIND_REGISTERS; i++)
        if (row->registers[i].kind > REGISTER_UNDEFINED && !is_saved(machine, i))
            return false;
    for (size_t i = 0; i < machine->saved_count; i++)
        if (!shorten_slot(&rule->slots[i], &row->registers[machine->saved[i]]))
            return false;
    return true;
}

/* ---- Steps ---- */

/* A stack grows downwards: a caller's frame lies above, but behind a signal, which may have a stack
 * of its own. */
static bool ascends(const struct unwind_step *step, const struct unwind_frame *frame, uint64_t cfa,
                    bool signal_frame)
{
    uint64_t sp = frame->registers[step->machine->sp];
    return signal_frame ||
           (cfa >= sp && cfa - sp >= (frame->innermost ? 0 : step->machine->least_growth));
}

/* FRAME has become the caller's, but for where it goes on: at PC. */
static enum unwind_result go_on(struct unwind_step *step, struct unwind_frame *frame, uint64_t pc,
                                bool signal_frame)
{
    pc &= step->machine->address_mask;
    if (pc == 0)
        return UNWIND_END;
    bool moved = step->cfa != frame->registers[step->machine->sp] || pc != frame->pc;
    frame->pc = pc;
    frame->exact = frame->innermost = signal_frame;
    unwind_frame_set(frame, step->machine->sp, step->cfa);
    return moved ? UNWIND_CALLER : UNWIND_WRONG;
}

/* The word at ADDR, into register REG of CALLER.  Memory below the stack pointer has been popped
 * already, so the register holds the value. */
static void load_register(const struct unwind_step *step, const struct unwind_frame *frame,
                          uint64_t addr, unsigned reg, struct unwind_frame *caller)
{
    if (addr < frame->registers[step->machine->sp] &&
        addr + 4096 > frame->registers[step->machine->sp])
        return;
    if (user_stack_has(step->stack, addr, WORD))
        unwind_frame_set(caller, reg, user_stack_word(step->stack, addr));
    else
        caller->known &= ~(UINT64_C(1) << reg);
}

enum unwind_result unwind_by_rule(struct unwind_step *step, const struct unwind_rule *rule,
                                  struct unwind_frame *frame)
{
    const struct machine *machine = step->machine;
    struct unwind_frame caller = *frame;
    if (!unwind_frame_knows(frame, rule->cfa_register))
        return UNWIND_CUT;
    uint64_t cfa = frame->registers[rule->cfa_register] + (uint64_t)(int64_t)rule->cfa_offset;
    if (!ascends(step, frame, cfa, rule->signal_frame))
        return UNWIND_WRONG;
    step->cfa = cfa;
    for (size_t i = 0; i < machine->saved_count; i++)
        if (rule->slots[i] == SLOT_LOST)
            caller.known &= ~(UINT64_C(1) << machine->saved[i]);
        else if (rule->slots[i] != SLOT_SAME && rule->slots[i] != SLOT_UNDEFINED)
            load_register(step, frame, cfa + (uint64_t)(int64_t)rule->slots[i] * WORD,
                          machine->saved[i], &caller);
    if (rule->slots[0] == SLOT_UNDEFINED)
        return UNWIND_END;
    if (rule->slots[0] == SLOT_SAME &&
        (!frame->innermost || machine->link_register == UNWIND_NO_REGISTER))
        return UNWIND_WRONG;
    if (!unwind_frame_knows(&caller, machine->return_register))
        return UNWIND_CUT;
    *frame = caller;
    return go_on(step, frame, caller.registers[machine->return_register], rule->signal_frame);
}

/* ---- Rows of any form ---- */

static enum unwind_result evaluate(const struct unwind_step *step, const struct register_rule *rule,
                                   const uint64_t *cfa, const struct unwind_frame *frame,
                                   uint64_t *value)
{
    enum expression_result result =
        cfi_expression_evaluate(&rule->expression, cfa, frame, step->stack, step->budget, value);
    return result == EXPRESSION_DONE  ? UNWIND_CALLER
           : result == EXPRESSION_CUT ? UNWIND_CUT
                                      : UNWIND_WRONG;
}

static void copy_register(const struct unwind_frame *frame, int64_t from, unsigned reg,
                          struct unwind_frame *caller)
{
    if (from >= 0 && from < UNWIND_REGISTERS && unwind_frame_knows(frame, (unsigned)from))
        unwind_frame_set(caller, reg, frame->registers[from]);
    else
        caller->known &= ~(UINT64_C(1) << reg);
}

static void apply_register(struct unwind_step *step, const struct register_rule *rule, unsigned reg,
                           const struct unwind_frame *frame, struct unwind_frame *caller)
{
    uint64_t value = step->cfa + (uint64_t)rule->offset;
    switch (rule->kind) {
    case REGISTER_AT_OFFSET:
        load_register(step, frame, value, reg, caller);
        break;
    case REGISTER_IS_OFFSET:
        unwind_frame_set(caller, reg, value);
        break;
    case REGISTER_IN_REGISTER:
        copy_register(frame, rule->offset, reg, caller);
        break;
    case REGISTER_AT_EXPRESSION:
    case REGISTER_IS_EXPRESSION:
        if (evaluate(step, rule, &step->cfa, frame, &value) != UNWIND_CALLER)
            caller->known &= ~(UINT64_C(1) << reg);
        else if (rule->kind == REGISTER_IS_EXPRESSION)
            unwind_frame_set(caller, reg, value);
        else
            load_register(step, frame, value, reg, caller);
        break;
    default:
        break;
    }
}

enum unwind_result unwind_by_row(struct unwind_step *step, const struct cfi_row *row,
                                 struct unwind_frame *frame)
{
    struct unwind_frame caller = *frame;
    unsigned column = row->return_register;
    uint64_t cfa = 0;
    enum unwind_result result = UNWIND_CALLER;
    if (row->cfa.kind == REGISTER_IS_EXPRESSION)
        result = evaluate(step, &row->cfa, NULL, frame, &cfa);
    else if (unwind_frame_knows(frame, row->cfa_register))
        cfa = frame->registers[row->cfa_register] + (uint64_t)row->cfa.offset;
    else
        result = UNWIND_CUT;
    if (result != UNWIND_CALLER)
        return result;
    if (!ascends(step, frame, cfa, row->signal_frame))
        return UNWIND_WRONG;
    step->cfa = cfa;
    unwind_frame_set(&caller, step->machine->sp, cfa); /* a signal frame has saved it */
    for (unsigned i = 0; i < UNWIND_REGISTERS; i++)
        apply_register(step, &row->registers[i], i, frame, &caller);
    if (row->registers[column].kind == REGISTER_UNDEFINED)
        return UNWIND_END;
    if (row->registers[column].kind == REGISTER_SAME &&
        (!frame->innermost || step->machine->link_register == UNWIND_NO_REGISTER))
        return UNWIND_WRONG;
    if (!unwind_frame_knows(&caller, column) || !unwind_frame_knows(&caller, step->machine->sp))
        return UNWIND_CUT;
    if (!ascends(step, frame, caller.registers[step->machine->sp], row->signal_frame))
        return UNWIND_WRONG; /* a rule of the stack pointer's own */
    step->cfa = caller.registers[step->machine->sp];
    caller.registers[step->machine->sp] = frame->registers[step->machine->sp];
    *frame = caller;
    return go_on(step, frame, caller.registers[column], row->signal_frame);
}

/* ---- Without a table ---- */

/* A caller whose frame would begin at CFA, with its return address at ADDR, and its frame pointer
 * at FP_ADDR, or 0: in the register. */
static enum unwind_result try_caller(struct unwind_step *step, uint64_t addr, uint64_t fp_addr,
                                     uint64_t cfa, struct unwind_frame *frame)
{
    const struct user_stack *stack = step->stack;
    if (!user_stack_has(stack, addr, WORD) || (fp_addr && !user_stack_has(stack, fp_addr, WORD))) {
        if (addr < stack->start + stack->size)
            return UNWIND_WRONG;
        step->cfa = cfa;
        return UNWIND_CUT;
    }
    uint64_t pc = user_stack_word(stack, addr) & step->machine->address_mask;
    if (pc && !step->returns_to(step->context, pc))
        return UNWIND_WRONG;
    step->cfa = cfa;
    if (fp_addr)
        unwind_frame_set(frame, step->machine->fp, user_stack_word(stack, fp_addr));
    return go_on(step, frame, pc, false);
}

/* A frame that no call has made: V8's deoptimizer makes the frames of interpreted functions, and
 * has each of them go on at the first instruction of a builtin. */
static enum unwind_result try_made_frame(struct unwind_step *step, uint64_t fp,
                                         struct unwind_frame *frame)
{
    if (!step->begins_at || !user_stack_has(step->stack, fp, 2 * WORD))
        return UNWIND_WRONG;
    uint64_t pc = user_stack_word(step->stack, fp + WORD) & step->machine->address_mask;
    if (!step->begins_at(step->context, pc))
        return UNWIND_WRONG;
    step->cfa = fp + 2 * WORD;
    unwind_frame_set(frame, step->machine->fp, user_stack_word(step->stack, fp));
    enum unwind_result result = go_on(step, frame, pc, false);
    frame->exact = true;
    return result;
}

/* By the frame record that the frame pointer points to: the caller's, and the return address. */
static enum unwind_result try_frame_pointer(struct unwind_step *step, struct unwind_frame *frame)
{
    const struct machine *machine = step->machine;
    uint64_t fp = frame->registers[machine->fp];
    if (!unwind_frame_knows(frame, machine->fp))
        return UNWIND_CUT;
    if (fp % WORD || fp < frame->registers[machine->sp] || fp > UINT64_MAX - 2 * WORD)
        return UNWIND_WRONG;
    enum unwind_result result = try_caller(step, fp + WORD, fp, fp + 2 * WORD, frame);
    return result == UNWIND_WRONG ? try_made_frame(step, fp, frame) : result;
}

/* For code that has pushed nothing: the return address is on top of the stack, or in its
 * register. */
static enum unwind_result try_top(struct unwind_step *step, struct unwind_frame *frame)
{
    const struct machine *machine = step->machine;
    uint64_t sp = frame->registers[machine->sp];
    if (machine->link_register == UNWIND_NO_REGISTER)
        return try_caller(step, sp, 0, sp + WORD, frame);
    uint64_t pc = frame->registers[machine->link_register] & machine->address_mask;
    if (!frame->innermost || !unwind_frame_knows(frame, machine->link_register) ||
        !step->returns_to(step->context, pc))
        return UNWIND_WRONG;
    step->cfa = sp;
    return go_on(step, frame, pc, false);
}

/* Whether a caller's return address may stand in front of the frame record: then code that never
 * set the frame pointer would be left out.  Where no word can be one, the record is this frame's
 * own, for a call pushes its return address below all that its callers have. */
static bool may_leave_out(struct unwind_step *step, const struct unwind_frame *frame)
{
    const struct machine *machine = step->machine;
    uint64_t fp = frame->registers[machine->fp], at = frame->registers[machine->sp];
    if (frame->innermost && unwind_frame_knows(frame, machine->link_register) &&
        step->returns_to(step->context,
                         frame->registers[machine->link_register] & machine->address_mask))
        return true;
    for (at = (at + WORD - 1) / WORD * WORD; at < fp && user_stack_has(step->stack, at, WORD);
         at += WORD)
        if (step->returns_to(step->context,
                             user_stack_word(step->stack, at) & machine->address_mask))
            return true;
    return false;
}

/* By the frame pointer of code of which the prologue is not known.  What nothing leads to may be of
 * another function than the log says: a JVM's interpreter has many in one. */
static enum unwind_result try_unproven(struct unwind_step *step, const struct unwind_rule *rule,
                                       struct unwind_frame *frame)
{
    const struct unwind_frame callee = *frame;
    enum unwind_result result = try_frame_pointer(step, frame);
    if (result != UNWIND_CALLER || !may_leave_out(step, &callee))
        return result;
    if (!rule->followed || rule->place == PLACE_UNKNOWN) {
        step->doubted = true;
        return result;
    }
    *frame = callee;
    return UNWIND_WRONG;
}

/* By code that was followed: where it leads to is behind a call, or the callers are not there. */
static enum unwind_result try_followed(struct unwind_step *step, const struct unwind_rule *rule,
                                       struct unwind_frame *frame)
{
    struct unwind_frame caller = *frame;
    uint64_t cfa = step->cfa;
    enum unwind_result result = unwind_by_rule(step, rule, &caller);
    if (result == UNWIND_CALLER && !step->returns_to(step->context, caller.pc)) {
        caller.exact = step->begins_at && step->begins_at(step->context, caller.pc);
        result = caller.exact ? UNWIND_CALLER : UNWIND_WRONG;
    }
    if (result == UNWIND_WRONG)
        step->cfa = cfa;
    else
        *frame = caller;
    return result;
}

enum unwind_result unwind_by_place(struct unwind_step *step, const struct unwind_rule *rule,
                                   struct unwind_frame *frame)
{
    const enum code_place place = rule->place;
    uint64_t sp = frame->registers[step->machine->sp];
    enum unwind_result result = UNWIND_WRONG;
    if (rule->followed && (result = try_followed(step, rule, frame)) != UNWIND_WRONG)
        return result;
    if (place == PLACE_PUSHED && frame->innermost)
        result = try_caller(step, sp + WORD, sp, sp + 2 * WORD, frame);
    else if (place == PLACE_BEFORE || (place == PLACE_FRAMELESS && frame->innermost))
        result = try_top(step, frame);
    if (result == UNWIND_CALLER)
        return result;
    return place == PLACE_IN_FRAME ? try_frame_pointer(step, frame)
                                   : try_unproven(step, rule, frame);
}
