/* See cfi_program.h.  Source: DWARF 5, section 6.4.2. */
#include "injector/native/cfi_program.h"

#include "jitdump/format/cfa_instruction.h"

enum { MAX_REMEMBERED = 8, SIGN_STATE = 32, DWARF_SIGN_STATE = 34 };

struct interpreter {
    const struct cfi_entry *entry;
    const struct machine *machine;
    struct unwind_budget *budget;
    uint64_t pc, target;
    struct cfa_rule cfa;
    struct cfi_row row;     /* but for its CFA */
    struct cfi_row initial; /* from the CIE, for restore */
    struct cfi_row remembered[MAX_REMEMBERED];
    struct cfa_rule remembered_cfas[MAX_REMEMBERED];
    size_t remembered_count;
    bool failed;
};

/* Rules of registers that no unwinder needs (vectors) are dropped. */
static void set_rule(struct interpreter *run, uint64_t reg, struct register_rule rule)
{
    if (reg == DWARF_SIGN_STATE && run->machine->signs_returns)
        reg = SIGN_STATE;
    if (reg < UNWIND_REGISTERS)
        run->row.registers[reg] = rule;
}

static void remember(struct interpreter *run)
{
    if (run->remembered_count == MAX_REMEMBERED) {
        run->failed = true;
        return;
    }
    run->remembered_cfas[run->remembered_count] = run->cfa;
    run->remembered[run->remembered_count++] = run->row;
}

static void recall(struct interpreter *run)
{
    if (run->remembered_count == 0) {
        run->failed = true;
        return;
    }
    run->row = run->remembered[--run->remembered_count];
    run->cfa = run->remembered_cfas[run->remembered_count];
}

static void run_instruction(struct interpreter *run, const struct cfa_instruction *instruction)
{
    static const uint8_t kinds[] = {
        [CFA_IS_SAVED_AT] = REGISTER_AT_OFFSET,
        [CFA_IS_VALUE] = REGISTER_IS_OFFSET,
        [CFA_IS_IN_REGISTER] = REGISTER_IN_REGISTER,
        [CFA_IS_SAVED_AT_EXPRESSION] = REGISTER_AT_EXPRESSION,
        [CFA_IS_VALUE_OF_EXPRESSION] = REGISTER_IS_EXPRESSION,
        [CFA_IS_UNDEFINED] = REGISTER_UNDEFINED,
        [CFA_IS_SAME] = REGISTER_SAME,
    };
    uint64_t reg = instruction->reg;
    struct register_rule rule = {.offset = instruction->offset,
                                 .expression = instruction->expression};
    switch (instruction->subject) {
    case CFA_IS_NOTHING:
        break;
    case CFA_IS_CFA:
        run->failed |= !cfa_rule_change(&run->cfa, instruction);
        break;
    case CFA_IS_RESTORED:
        if (reg < UNWIND_REGISTERS)
            set_rule(run, reg, run->initial.registers[reg]);
        break;
    case CFA_IS_REMEMBER:
        remember(run);
        break;
    case CFA_IS_RECALL:
        recall(run);
        break;
    case CFA_IS_SIGNED: /* the return address is stripped in any case */
        run->failed |= !run->machine->signs_returns;
        break;
    case CFA_IS_IN_REGISTER:
        rule.offset = (int64_t)instruction->other_reg;
        __attribute__((fallthrough));
    default:
        rule.kind = kinds[instruction->subject];
        set_rule(run, reg, rule);
    }
}

/* Run the SIZE bytes of PROGRAM up to the target.  Returns false if that lies before their end. */
static bool run_program(struct interpreter *run, const uint8_t *program, size_t size)
{
    struct cfa_decoder decoder =
        cfa_decoder_over(program, size, false, run->entry->code_align, run->entry->data_align);
    struct cfa_instruction instruction;
    while (!run->failed && cfa_next(&decoder, &instruction)) {
        run->failed |= !unwind_budget_take(run->budget);
        if (instruction.subject != CFA_IS_ADVANCE)
            run_instruction(run, &instruction);
        else if (instruction.delta > run->target - run->pc)
            return false;
        else
            run->pc += instruction.delta;
    }
    run->failed |= decoder.wrong != NULL;
    return true;
}

/* Put the CFA that the instructions have defined into the row.  Returns false if that is
 * nothing. */
static bool take_cfa(struct interpreter *run)
{
    const struct cfa_rule *cfa = &run->cfa;
    if (cfa->kind == CFA_RULE_EXPRESSION)
        run->row.cfa =
            (struct register_rule){.kind = REGISTER_IS_EXPRESSION, .expression = cfa->expression};
    else
        run->row.cfa = (struct register_rule){.kind = REGISTER_IS_OFFSET, .offset = cfa->offset};
    if (cfa->kind == CFA_RULE_OFFSET && cfa->reg < UNWIND_REGISTERS)
        run->row.cfa_register = (uint8_t)cfa->reg;
    return cfa->kind == CFA_RULE_EXPRESSION || run->row.cfa_register != UNWIND_NO_REGISTER;
}

bool cfi_row_find(const struct cfi_entry *entry, uint64_t pc, const struct machine *machine,
                  struct unwind_budget *budget, struct cfi_row *row)
{
    struct interpreter run;
    if (pc < entry->start || entry->return_register >= UNWIND_REGISTERS)
        return false;
    run.entry = entry;
    run.machine = machine;
    run.budget = budget;
    run.pc = 0;
    run.target = 0;
    run.remembered_count = 0;
    run.failed = false;
    run.cfa = (struct cfa_rule){.kind = CFA_RULE_NONE};
    run.row = (struct cfi_row){.cfa_register = UNWIND_NO_REGISTER,
                               .return_register = (uint8_t)entry->return_register,
                               .signal_frame = entry->signal_frame};
    run.initial = run.row;
    run.failed = !run_program(&run, entry->initial, entry->initial_bytes) || run.failed;
    run.initial = run.row;
    run.target = pc - entry->start;
    run_program(&run, entry->instructions, entry->instructions_bytes);
    bool known = take_cfa(&run);
    *row = run.row;
    return known && !run.failed;
}
