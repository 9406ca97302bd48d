/* Tier 2: expressions.
 *
 * Temporaries are registers that calls destroy, used as a stack: compute(node, n) puts the value into
 * temporaries[n] while those below n hold values that are still needed.  rax, rcx and rdx are free for whatever an
 * instruction demands.  Who runs out of temporaries pushes one. */
#include "examples/tinyjit/tier2.h"

#include "examples/tinyjit/constant.h"

enum { TEMPORARIES = 6 };

static const enum x86_register temporaries[TEMPORARIES] = {X86_R8,  X86_R9,  X86_R10,
                                                           X86_R11, X86_RSI, X86_RDI};

static void compute(struct tier2 *tier, const struct node *node, unsigned held);
static void branch(struct tier2 *tier, const struct node *node, bool when, x86_label label,
                   unsigned held);

/* ---- Operands ---- */

static struct operand register_operand(enum x86_register reg)
{
    return (struct operand){.kind = OPERAND_REGISTER, .reg = reg};
}

static struct operand memory_operand(struct x86_memory memory)
{
    return (struct operand){.kind = OPERAND_MEMORY, .memory = memory};
}

void tier2_load(struct tier2 *tier, enum x86_register to, struct operand from)
{
    if (from.kind == OPERAND_CONSTANT)
        x86_mov_constant(tier->x86, to, from.constant);
    else if (from.kind == OPERAND_REGISTER)
        x86_mov(tier->x86, to, from.reg);
    else
        x86_load(tier->x86, to, from.memory);
}

/* Whether NODE needs no computing: then it is *OPERAND. */
static bool is_simple(const struct tier2 *tier, const struct node *node, struct operand *operand)
{
    int64_t value;
    if (constant_value(node, &value)) {
        *operand = (struct operand){.kind = OPERAND_CONSTANT, .constant = (int32_t)value};
        return value == (int32_t)value;
    }
    if (node->kind == NODE_GLOBAL) {
        *operand = memory_operand(emitter_cell(tier->e, node->index));
        return true;
    }
    if (node->kind != NODE_LOCAL)
        return false;
    const struct home *home = &tier->homes.homes[node->index];
    *operand = home->in_register ? register_operand(home->reg)
                                 : memory_operand(emitter_local(tier->e, home->frame_local));
    return true;
}

static struct operand operand_of(struct tier2 *tier, const struct node *node, unsigned held)
{
    struct operand operand;
    if (is_simple(tier, node, &operand))
        return operand;
    if (held < TEMPORARIES) {
        compute(tier, node, held);
        return register_operand(temporaries[held]);
    }
    enum x86_register last = temporaries[TEMPORARIES - 1];
    emitter_push(tier->e, last);
    compute(tier, node, TEMPORARIES - 1);
    x86_mov(tier->x86, X86_RAX, last);
    emitter_pop(tier->e, last);
    return register_operand(X86_RAX);
}

/* The same, in a register: its own, if it has one. */
static enum x86_register register_of(struct tier2 *tier, const struct node *node, unsigned held)
{
    struct operand operand;
    if (is_simple(tier, node, &operand) && operand.kind == OPERAND_REGISTER)
        return operand.reg;
    compute(tier, node, held);
    return temporaries[held];
}

/* ---- Operations: TO = TO operation RIGHT ---- */

static void apply_alu(struct tier2 *tier, enum x86_alu operation, enum x86_register to,
                      struct operand right)
{
    if (right.kind == OPERAND_CONSTANT)
        x86_alu_constant(tier->x86, operation, to, right.constant);
    else if (right.kind == OPERAND_REGISTER)
        x86_alu(tier->x86, operation, to, right.reg);
    else
        x86_alu_memory(tier->x86, operation, to, right.memory);
}

/* The exponent of a power of two from 2 on, or 0. */
static unsigned exponent_of(struct operand operand)
{
    int32_t value = operand.constant;
    if (operand.kind != OPERAND_CONSTANT || value < 2 || (value & (value - 1)) != 0)
        return 0;
    return (unsigned)__builtin_ctz((unsigned)value);
}

static void apply_multiply(struct tier2 *tier, enum x86_register to, struct operand right)
{
    if (exponent_of(right))
        x86_shift_constant(tier->x86, X86_SHL, to, (uint8_t)exponent_of(right));
    else if (right.kind == OPERAND_CONSTANT)
        x86_imul_constant(tier->x86, to, to, right.constant);
    else if (right.kind == OPERAND_REGISTER)
        x86_imul(tier->x86, to, right.reg);
    else
        x86_imul_memory(tier->x86, to, right.memory);
}

static void apply_shift(struct tier2 *tier, enum operation operation, enum x86_register to,
                        struct operand right)
{
    enum x86_shift shift = operation == OP_SHL ? X86_SHL : X86_SAR;
    if (right.kind == OPERAND_CONSTANT) {
        x86_shift_constant(tier->x86, shift, to, (uint8_t)(right.constant & 63));
        return;
    }
    tier2_load(tier, X86_RCX, right);
    x86_shift_cl(tier->x86, shift, to);
}

/* Division by 2 to the EXPONENT rounds towards zero: a negative dividend gets 2^EXPONENT - 1 added first. */
static void divide_by_power(struct tier2 *tier, enum operation operation, unsigned exponent)
{
    int32_t mask = (int32_t)((1u << exponent) - 1);
    x86_cqo(tier->x86);
    x86_alu_constant(tier->x86, X86_AND, X86_RDX, mask);
    x86_alu(tier->x86, X86_ADD, X86_RAX, X86_RDX);
    if (operation == OP_DIV) {
        x86_shift_constant(tier->x86, X86_SAR, X86_RAX, (uint8_t)exponent);
        return;
    }
    x86_alu_constant(tier->x86, X86_AND, X86_RAX, mask);
    x86_alu(tier->x86, X86_SUB, X86_RAX, X86_RDX);
}

static void apply_divide(struct tier2 *tier, const struct node *node, enum x86_register to,
                         struct operand right)
{
    bool constant = right.kind == OPERAND_CONSTANT;
    if (!exponent_of(right))
        tier2_load(tier, X86_RCX, right);
    x86_mov(tier->x86, X86_RAX, to);
    if (exponent_of(right)) {
        divide_by_power(tier, node->operation, exponent_of(right));
    } else if (constant && right.constant != 0 && right.constant != -1) {
        x86_cqo(tier->x86);
        x86_idiv(tier->x86, X86_RCX);
        if (node->operation == OP_MOD)
            x86_mov(tier->x86, X86_RAX, X86_RDX);
    } else {
        emitter_divide(tier->e, node->operation, node->at);
    }
    x86_mov(tier->x86, to, X86_RAX);
}

static void apply(struct tier2 *tier, const struct node *node, enum x86_register to,
                  struct operand right)
{
    static const enum x86_alu alu[] = {[OP_ADD] = X86_ADD,
                                       [OP_SUB] = X86_SUB,
                                       [OP_AND] = X86_AND,
                                       [OP_OR] = X86_OR,
                                       [OP_XOR] = X86_XOR};
    switch (node->operation) {
    case OP_MUL:
        apply_multiply(tier, to, right);
        break;
    case OP_DIV:
    case OP_MOD:
        apply_divide(tier, node, to, right);
        break;
    case OP_SHL:
    case OP_SHR:
        apply_shift(tier, node->operation, to, right);
        break;
    default:
        apply_alu(tier, alu[node->operation], to, right);
    }
}

void tier2_apply_to(struct tier2 *tier, const struct node *node, enum x86_register to)
{
    apply(tier, node, to, operand_of(tier, node->right, 0));
}

/* ---- Calls ---- */

/* Values that can still be read after the other arguments are computed: nothing changes them meanwhile. */
static bool is_stable(const struct tier2 *tier, const struct node *node, struct operand *operand)
{
    return is_simple(tier, node, operand) && node->kind != NODE_GLOBAL;
}

struct argument {
    const struct node *node;
    enum x86_register to;
    bool pushed;
};

/* Compute the arguments and bring each into its register.  All but the last that needs computing are pushed
 * meanwhile, because the next one may be a call. */
static void pass_arguments(struct tier2 *tier, struct argument *arguments, unsigned count)
{
    struct operand operand;
    const struct argument *last = NULL;
    for (unsigned i = 0; i < count; i++)
        if (!is_stable(tier, arguments[i].node, &operand))
            last = &arguments[i];
    for (unsigned i = 0; i < count; i++) {
        if (is_stable(tier, arguments[i].node, &operand))
            continue;
        compute(tier, arguments[i].node, 0);
        arguments[i].pushed = &arguments[i] != last;
        if (arguments[i].pushed)
            emitter_push(tier->e, temporaries[0]);
    }
    if (last)
        x86_mov(tier->x86, last->to, temporaries[0]);
    for (unsigned i = count; i-- > 0;)
        if (arguments[i].pushed)
            emitter_pop(tier->e, arguments[i].to);
    for (unsigned i = 0; i < count; i++)
        if (is_stable(tier, arguments[i].node, &operand))
            tier2_load(tier, arguments[i].to, operand);
}

static void compile_arguments(struct tier2 *tier, const struct node *node)
{
    struct argument arguments[MAX_PARAMETERS + 1];
    unsigned count = 0, registers = 0;
    if (node->kind == NODE_CALL_VALUE)
        arguments[count++] = (struct argument){node->left, X86_RAX, false};
    if (node->kind == NODE_BUILTIN)
        arguments[count++] = (struct argument){node->left, X86_RDI, false};
    for (const struct node *item = node->items; item; item = item->next)
        arguments[count++] =
            (struct argument){item, emitter_argument_registers[registers++], false};
    pass_arguments(tier, arguments, count);
}

static bool is_call(const struct node *node)
{
    return node->kind == NODE_CALL || node->kind == NODE_CALL_VALUE || node->kind == NODE_BUILTIN ||
           node->kind == NODE_INLINED;
}

static void compile_real_call(struct tier2 *tier, const struct node *node)
{
    const struct position around = tier->e->at;
    compile_arguments(tier, node);
    emitter_line(tier->e, node->at);
    if (node->kind == NODE_CALL)
        emitter_call_function(tier->e, node->index);
    else if (node->kind == NODE_CALL_VALUE)
        emitter_call_value(tier->e, node->item_count, node->at);
    else
        emitter_call_helper(tier->e, node->index);
    emitter_line(tier->e, around);
}

/* The result is in rax. */
static void compile_call(struct tier2 *tier, const struct node *node, unsigned held)
{
    for (unsigned i = 0; i < held; i++)
        emitter_push(tier->e, temporaries[i]);
    if (node->kind == NODE_INLINED)
        tier2_inlined(tier, node);
    else
        compile_real_call(tier, node);
    for (unsigned i = held; i-- > 0;)
        emitter_pop(tier->e, temporaries[i]);
}

/* ---- Conditions ---- */

/* Compare, and say which condition means true. */
static enum x86_condition compare(struct tier2 *tier, const struct node *node, unsigned held)
{
    struct operand ignored;
    bool left_held = !is_simple(tier, node->left, &ignored) || ignored.kind != OPERAND_REGISTER;
    enum x86_register left = register_of(tier, node->left, held);
    struct operand right = operand_of(tier, node->right, held + left_held);
    if (right.kind == OPERAND_CONSTANT && right.constant == 0)
        x86_test(tier->x86, left, left);
    else
        apply_alu(tier, X86_CMP, left, right);
    return operation_condition(node->operation);
}

/* && if WHEN is false, || if it is true: each side can decide for LABEL alone. */
static void branch_either(struct tier2 *tier, const struct node *node, bool when, x86_label label,
                          unsigned held)
{
    branch(tier, node->left, when, label, held);
    branch(tier, node->right, when, label, held);
}

/* The other way round: only both sides together do. */
static void branch_both(struct tier2 *tier, const struct node *node, bool when, x86_label label,
                        unsigned held)
{
    x86_label no = x86_label_new(tier->x86);
    branch(tier, node->left, !when, no, held);
    branch(tier, node->right, when, label, held);
    x86_label_bind(tier->x86, no);
}

static void branch_compared(struct tier2 *tier, const struct node *node, bool when, x86_label label,
                            unsigned held)
{
    enum x86_condition condition = X86_NOT_EQUAL;
    if (node->kind == NODE_BINARY && operation_is_comparison(node->operation)) {
        condition = compare(tier, node, held);
    } else {
        enum x86_register value = register_of(tier, node, held);
        x86_test(tier->x86, value, value);
    }
    x86_jcc(tier->x86, when ? condition : x86_negated(condition), label);
}

static void branch(struct tier2 *tier, const struct node *node, bool when, x86_label label,
                   unsigned held)
{
    int64_t value;
    if (constant_value(node, &value)) {
        if ((value != 0) == when)
            x86_jmp(tier->x86, label);
    } else if (node->kind == NODE_UNARY && node->operation == OP_NOT) {
        branch(tier, node->left, !when, label, held);
    } else if (node->kind == NODE_BINARY && node->operation == OP_BOTH) {
        (when ? branch_both : branch_either)(tier, node, when, label, held);
    } else if (node->kind == NODE_BINARY && node->operation == OP_EITHER) {
        (when ? branch_either : branch_both)(tier, node, when, label, held);
    } else {
        branch_compared(tier, node, when, label, held);
    }
}

void tier2_branch(struct tier2 *tier, const struct node *node, bool when, x86_label label)
{
    branch(tier, node, when, label, 0);
}

/* ---- Values ---- */

/* &&, || and !, whose value is 1 or 0. */
static void compute_truth(struct tier2 *tier, const struct node *node, unsigned held)
{
    x86_label no = x86_label_new(tier->x86), end = x86_label_new(tier->x86);
    branch(tier, node, false, no, held);
    x86_mov_constant(tier->x86, temporaries[held], 1);
    x86_jmp(tier->x86, end);
    x86_label_bind(tier->x86, no);
    x86_mov_constant(tier->x86, temporaries[held], 0);
    x86_label_bind(tier->x86, end);
}

static void compute_unary(struct tier2 *tier, const struct node *node, unsigned held)
{
    if (node->operation == OP_NOT) {
        compute_truth(tier, node, held);
        return;
    }
    compute(tier, node->left, held);
    if (node->operation == OP_NEG)
        x86_neg(tier->x86, temporaries[held]);
    else
        x86_not(tier->x86, temporaries[held]);
}

static void compute_binary(struct tier2 *tier, const struct node *node, unsigned held)
{
    if (operation_is_comparison(node->operation)) {
        x86_set(tier->x86, compare(tier, node, held), temporaries[held]);
    } else if (node->operation == OP_BOTH || node->operation == OP_EITHER) {
        compute_truth(tier, node, held);
    } else {
        compute(tier, node->left, held);
        apply(tier, node, temporaries[held], operand_of(tier, node->right, held + 1));
    }
}

static void compute_element(struct tier2 *tier, const struct node *node, unsigned held)
{
    enum x86_register subscript = register_of(tier, node->left, held);
    x86_load(tier->x86, temporaries[held], emitter_element(tier->e, node, subscript));
}

static void compute(struct tier2 *tier, const struct node *node, unsigned held)
{
    struct operand operand;
    int64_t value;
    if (constant_value(node, &value)) {
        x86_mov_constant(tier->x86, temporaries[held], value);
    } else if (is_simple(tier, node, &operand)) {
        tier2_load(tier, temporaries[held], operand);
    } else if (is_call(node)) {
        compile_call(tier, node, held);
        x86_mov(tier->x86, temporaries[held], X86_RAX);
    } else if (node->kind == NODE_UNARY) {
        compute_unary(tier, node, held);
    } else if (node->kind == NODE_BINARY) {
        compute_binary(tier, node, held);
    } else {
        compute_element(tier, node, held);
    }
}

void tier2_value_to(struct tier2 *tier, const struct node *node, enum x86_register to)
{
    if (is_call(node)) {
        compile_call(tier, node, 0);
        x86_mov(tier->x86, to, X86_RAX);
    } else {
        tier2_load(tier, to, operand_of(tier, node, 0));
    }
}

struct operand tier2_operand(struct tier2 *tier, const struct node *node)
{
    if (!is_call(node))
        return operand_of(tier, node, 0);
    compile_call(tier, node, 0);
    return register_operand(X86_RAX);
}

void tier2_set_element(struct tier2 *tier, const struct node *node)
{
    enum x86_register subscript = register_of(tier, node->left, 0);
    enum x86_register value = register_of(tier, node->right, 1);
    x86_store(tier->x86, emitter_element(tier->e, node, subscript), value);
}
