/* See cfi_expression.h.  Source: DWARF 5, section 2.5, without the operations that need a context
 * that call frame information does not have. */
#include "injector/unwind/cfi_expression.h"

enum {
    OP_deref = 0x06,
    OP_const1u = 0x08,
    OP_const1s,
    OP_const2u,
    OP_const2s,
    OP_const4u,
    OP_const4s,
    OP_const8u,
    OP_const8s,
    OP_constu,
    OP_consts,
    OP_dup,
    OP_drop,
    OP_over,
    OP_pick,
    OP_swap,
    OP_rot,
    OP_abs = 0x19,
    OP_and,
    OP_div,
    OP_minus,
    OP_mod,
    OP_mul,
    OP_neg,
    OP_not,
    OP_or,
    OP_plus,
    OP_plus_uconst,
    OP_shl,
    OP_shr,
    OP_shra,
    OP_xor,
    OP_bra,
    OP_eq,
    OP_ge,
    OP_gt,
    OP_le,
    OP_lt,
    OP_ne,
    OP_skip,
    OP_lit0 = 0x30,
    OP_breg0 = 0x70,
    OP_bregx = 0x92,
    OP_deref_size = 0x94,
    OP_nop = 0x96,
};

enum { STACK_WORDS = 32, LITERALS = 32 };

struct evaluation {
    struct byte_cursor code;
    const struct unwind_frame *frame;
    const struct user_stack *memory;
    uint64_t stack[STACK_WORDS];
    size_t depth;
    enum expression_result result;
};

static void push(struct evaluation *run, uint64_t value)
{
    if (run->depth == STACK_WORDS)
        run->result = EXPRESSION_BROKEN;
    else
        run->stack[run->depth++] = value;
}

static uint64_t pop(struct evaluation *run)
{
    if (run->depth == 0) {
        run->result = EXPRESSION_BROKEN;
        return 0;
    }
    return run->stack[--run->depth];
}

static void pick(struct evaluation *run, size_t index)
{
    if (index < run->depth)
        push(run, run->stack[run->depth - 1 - index]);
    else
        run->result = EXPRESSION_BROKEN;
}

static void push_register(struct evaluation *run, uint64_t reg, int64_t offset)
{
    if (reg < UNWIND_REGISTERS && unwind_frame_knows(run->frame, (unsigned)reg))
        push(run, run->frame->registers[reg] + (uint64_t)offset);
    else
        run->result = EXPRESSION_CUT;
}

static void load(struct evaluation *run, uint8_t size)
{
    uint64_t addr = pop(run), value = 0;
    if (size == 0 || size > 8) {
        run->result = EXPRESSION_BROKEN;
    } else if (!user_stack_has(run->memory, addr, size)) {
        run->result = EXPRESSION_CUT;
    } else {
        for (uint8_t i = size; i-- > 0;)
            value = value << 8 | run->memory->bytes[addr - run->memory->start + i];
        push(run, value);
    }
}

static void jump(struct evaluation *run, int16_t by)
{
    int64_t to = (int64_t)run->code.offset + by;
    if (to < 0 || to > (int64_t)run->code.size)
        run->result = EXPRESSION_BROKEN;
    else
        run->code.offset = (size_t)to;
}

static void push_constant(struct evaluation *run, uint8_t opcode)
{
    struct byte_cursor *code = &run->code;
    switch (opcode) {
    case OP_const1u:
        push(run, cursor_u8(code));
        break;
    case OP_const1s:
        push(run, (uint64_t)(int8_t)cursor_u8(code));
        break;
    case OP_const2u:
        push(run, cursor_u16(code));
        break;
    case OP_const2s:
        push(run, (uint64_t)(int16_t)cursor_u16(code));
        break;
    case OP_const4u:
        push(run, cursor_u32(code));
        break;
    case OP_const4s:
        push(run, (uint64_t)(int32_t)cursor_u32(code));
        break;
    case OP_constu:
        push(run, cursor_uleb(code));
        break;
    case OP_consts:
        push(run, (uint64_t)cursor_sleb(code));
        break;
    default:
        push(run, cursor_u64(code));
    }
}

static void run_on_one(struct evaluation *run, uint8_t opcode)
{
    uint64_t value = pop(run);
    if (opcode == OP_not)
        push(run, ~value);
    else if (opcode == OP_neg || (int64_t)value < 0)
        push(run, 0 - value);
    else
        push(run, value);
}

static uint64_t shift(uint64_t value, uint64_t by, uint8_t opcode)
{
    if (by > 63)
        return opcode == OP_shra && (int64_t)value < 0 ? UINT64_MAX : 0;
    if (opcode == OP_shl)
        return value << by;
    uint64_t shifted = value >> by;
    return opcode == OP_shra && (int64_t)value < 0 && by ? shifted | ~(UINT64_MAX >> by) : shifted;
}

static uint64_t divide(struct evaluation *run, uint64_t left, uint64_t right, uint8_t opcode)
{
    if (right == 0 || (opcode == OP_div && left == UINT64_C(1) << 63 && right == UINT64_MAX)) {
        run->result = EXPRESSION_BROKEN;
        return 0;
    }
    return opcode == OP_mod ? left % right : (uint64_t)((int64_t)left / (int64_t)right);
}

static uint64_t compare(int64_t left, int64_t right, uint8_t opcode)
{
    switch (opcode) {
    case OP_eq:
        return left == right;
    case OP_ge:
        return left >= right;
    case OP_gt:
        return left > right;
    case OP_le:
        return left <= right;
    case OP_lt:
        return left < right;
    default:
        return left != right;
    }
}

static void run_on_two(struct evaluation *run, uint8_t opcode)
{
    uint64_t right = pop(run), left = pop(run);
    switch (opcode) {
    case OP_and:
        push(run, left & right);
        break;
    case OP_or:
        push(run, left | right);
        break;
    case OP_xor:
        push(run, left ^ right);
        break;
    case OP_plus:
        push(run, left + right);
        break;
    case OP_minus:
        push(run, left - right);
        break;
    case OP_mul:
        push(run, left * right);
        break;
    case OP_div:
    case OP_mod:
        push(run, divide(run, left, right, opcode));
        break;
    case OP_shl:
    case OP_shr:
    case OP_shra:
        push(run, shift(left, right, opcode));
        break;
    default:
        push(run, compare((int64_t)left, (int64_t)right, opcode));
    }
}

static void swap(struct evaluation *run, uint8_t opcode)
{
    uint64_t first = pop(run), second = pop(run), third = opcode == OP_rot ? pop(run) : 0;
    push(run, first);
    if (opcode == OP_rot)
        push(run, third);
    push(run, second);
}

static void run_on_stack(struct evaluation *run, uint8_t opcode)
{
    switch (opcode) {
    case OP_dup:
        pick(run, 0);
        break;
    case OP_drop:
        pop(run);
        break;
    case OP_over:
        pick(run, 1);
        break;
    case OP_pick:
        pick(run, cursor_u8(&run->code));
        break;
    default:
        swap(run, opcode);
    }
}

static void run_branch(struct evaluation *run, uint8_t opcode)
{
    int16_t by = (int16_t)cursor_u16(&run->code);
    if (opcode == OP_skip || pop(run))
        jump(run, by);
}

static bool is_between(uint8_t opcode, uint8_t first, uint8_t last)
{
    return opcode >= first && opcode <= last;
}

static void run_operation(struct evaluation *run, uint8_t opcode)
{
    if (is_between(opcode, OP_lit0, OP_lit0 + LITERALS - 1)) {
        push(run, (uint64_t)(opcode - OP_lit0));
    } else if (is_between(opcode, OP_breg0, OP_breg0 + LITERALS - 1)) {
        push_register(run, (uint64_t)(opcode - OP_breg0), cursor_sleb(&run->code));
    } else if (opcode == OP_bregx) {
        uint64_t reg = cursor_uleb(&run->code);
        push_register(run, reg, cursor_sleb(&run->code));
    } else if (is_between(opcode, OP_const1u, OP_consts)) {
        push_constant(run, opcode);
    } else if (is_between(opcode, OP_dup, OP_rot)) {
        run_on_stack(run, opcode);
    } else if (opcode == OP_deref || opcode == OP_deref_size) {
        load(run, opcode == OP_deref ? 8 : cursor_u8(&run->code));
    } else if (opcode == OP_bra || opcode == OP_skip) {
        run_branch(run, opcode);
    } else if (opcode == OP_abs || opcode == OP_neg || opcode == OP_not) {
        run_on_one(run, opcode);
    } else if (opcode == OP_plus_uconst) {
        push(run, pop(run) + cursor_uleb(&run->code));
    } else if (is_between(opcode, OP_and, OP_ne)) {
        run_on_two(run, opcode);
    } else if (opcode != OP_nop) {
        run->result = EXPRESSION_BROKEN;
    }
}

enum expression_result cfi_expression_evaluate(const struct cfa_block *expression,
                                               const uint64_t *initial,
                                               const struct unwind_frame *frame,
                                               const struct user_stack *stack,
                                               struct unwind_budget *budget, uint64_t *value)
{
    struct evaluation run = {.code = byte_cursor_over(expression->bytes, expression->size, false),
                             .frame = frame,
                             .memory = stack};
    if (initial)
        push(&run, *initial);
    while (cursor_left(&run.code) && run.result == EXPRESSION_DONE) {
        if (!unwind_budget_take(budget))
            run.result = EXPRESSION_BROKEN;
        else
            run_operation(&run, cursor_u8(&run.code));
    }
    if (run.code.failed)
        run.result = EXPRESSION_BROKEN;
    *value = run.result == EXPRESSION_DONE ? pop(&run) : 0;
    return run.result;
}
