/* Tier 1: the code of a stack machine.  An expression leaves its value in rax; whoever needs rax
 * for something else meanwhile pushes it. */
#include "examples/tinyjit/tiers.h"

#include "examples/tinyjit/memory.h"

/* Where the code asks for tier 2, away from the straight path. */
struct hot_spot {
    x86_label label, back;
    struct position at;
};

struct tier1 {
    struct emitter *e;
    struct x86_assembler *x86;
    uint32_t function;
    x86_label epilogue;
    struct hot_spot *hot_spots;
    size_t hot_spot_count, hot_spot_capacity;
};

static void compile_statement(struct tier1 *tier, const struct node *node);

/* ---- Expressions: the value goes to rax ---- */

static void compile_expression(struct tier1 *tier, const struct node *node);

static void compile_element(struct tier1 *tier, const struct node *node)
{
    compile_expression(tier, node->left);
    x86_load(tier->x86, X86_RAX, emitter_element(tier->e, node, X86_RAX));
}

static void compile_unary(struct tier1 *tier, const struct node *node)
{
    compile_expression(tier, node->left);
    if (node->operation == OP_NEG) {
        x86_neg(tier->x86, X86_RAX);
    } else if (node->operation == OP_INVERT) {
        x86_not(tier->x86, X86_RAX);
    } else {
        x86_test(tier->x86, X86_RAX, X86_RAX);
        x86_set(tier->x86, X86_EQUAL, X86_RAX);
    }
}

/* && and ||: the right side only if the left one doesn't decide. */
static void compile_logic(struct tier1 *tier, const struct node *node)
{
    x86_label decided = x86_label_new(tier->x86);
    compile_expression(tier, node->left);
    x86_test(tier->x86, X86_RAX, X86_RAX);
    x86_jcc(tier->x86, node->operation == OP_BOTH ? X86_EQUAL : X86_NOT_EQUAL, decided);
    compile_expression(tier, node->right);
    x86_test(tier->x86, X86_RAX, X86_RAX);
    x86_label_bind(tier->x86, decided);
    x86_set(tier->x86, X86_NOT_EQUAL, X86_RAX);
}

/* rax = rax OPERATION rcx. */
static void compile_operation(struct tier1 *tier, const struct node *node)
{
    static const enum x86_alu alu[] = {[OP_ADD] = X86_ADD,
                                       [OP_SUB] = X86_SUB,
                                       [OP_AND] = X86_AND,
                                       [OP_OR] = X86_OR,
                                       [OP_XOR] = X86_XOR};
    switch (node->operation) {
    case OP_MUL:
        x86_imul(tier->x86, X86_RAX, X86_RCX);
        return;
    case OP_DIV:
    case OP_MOD:
        emitter_divide(tier->e, node->operation, node->at);
        return;
    case OP_SHL:
    case OP_SHR:
        x86_shift_cl(tier->x86, node->operation == OP_SHL ? X86_SHL : X86_SAR, X86_RAX);
        return;
    default:
        break;
    }
    if (operation_is_comparison(node->operation)) {
        x86_alu(tier->x86, X86_CMP, X86_RAX, X86_RCX);
        x86_set(tier->x86, operation_condition(node->operation), X86_RAX);
    } else {
        x86_alu(tier->x86, alu[node->operation], X86_RAX, X86_RCX);
    }
}

static void compile_binary(struct tier1 *tier, const struct node *node)
{
    if (node->operation == OP_BOTH || node->operation == OP_EITHER) {
        compile_logic(tier, node);
        return;
    }
    compile_expression(tier, node->left);
    emitter_push(tier->e, X86_RAX);
    compile_expression(tier, node->right);
    x86_mov(tier->x86, X86_RCX, X86_RAX);
    emitter_pop(tier->e, X86_RAX);
    compile_operation(tier, node);
}

static void compile_call(struct tier1 *tier, const struct node *node)
{
    const struct position around = tier->e->at;
    if (node->kind == NODE_CALL_VALUE) {
        compile_expression(tier, node->left);
        emitter_push(tier->e, X86_RAX);
    }
    for (const struct node *argument = node->items; argument; argument = argument->next) {
        compile_expression(tier, argument);
        emitter_push(tier->e, X86_RAX);
    }
    for (uint32_t i = node->item_count; i-- > 0;)
        emitter_pop(tier->e, emitter_argument_registers[i]);
    emitter_line(tier->e, node->at);
    if (node->kind == NODE_CALL) {
        emitter_call_function(tier->e, node->index);
    } else {
        emitter_pop(tier->e, X86_RAX);
        emitter_call_value(tier->e, node->item_count, node->at);
    }
    emitter_line(tier->e, around);
}

static void compile_builtin(struct tier1 *tier, const struct node *node)
{
    const struct position around = tier->e->at;
    compile_expression(tier, node->left);
    x86_mov(tier->x86, X86_RDI, X86_RAX);
    emitter_line(tier->e, node->at);
    emitter_call_helper(tier->e, node->index);
    emitter_line(tier->e, around);
}

static void compile_expression(struct tier1 *tier, const struct node *node)
{
    switch (node->kind) {
    case NODE_NUMBER:
        x86_mov_constant(tier->x86, X86_RAX, node->value);
        break;
    case NODE_LOCAL:
        x86_load(tier->x86, X86_RAX, emitter_local(tier->e, node->index));
        break;
    case NODE_GLOBAL:
        x86_load(tier->x86, X86_RAX, emitter_cell(tier->e, node->index));
        break;
    case NODE_ELEMENT:
        compile_element(tier, node);
        break;
    case NODE_UNARY:
        compile_unary(tier, node);
        break;
    case NODE_BINARY:
        compile_binary(tier, node);
        break;
    case NODE_BUILTIN:
        compile_builtin(tier, node);
        break;
    default:
        compile_call(tier, node);
    }
}

/* ---- Counting ---- */

/* Count down the function's counter at COUNTER_OFFSET in its slot, and ask for tier 2 when it ends.
 */
static void compile_count(struct tier1 *tier, size_t counter_offset, struct position at)
{
    if (!tier->e->counting)
        return;
    int32_t offset = context_slot_offset(tier->function) + (int32_t)counter_offset;
    tier->hot_spots = array_room(tier->hot_spots, tier->hot_spot_count, &tier->hot_spot_capacity,
                                 sizeof *tier->hot_spots);
    struct hot_spot *spot = &tier->hot_spots[tier->hot_spot_count++];
    *spot = (struct hot_spot){x86_label_new(tier->x86), x86_label_new(tier->x86), at};
    x86_alu32_memory_constant(tier->x86, X86_SUB, x86_at(X86_R15, offset), 1);
    x86_jcc(tier->x86, X86_LESS_EQUAL, spot->label);
    x86_label_bind(tier->x86, spot->back);
}

/* Counters count between statements, where no register holds anything. */
static void compile_hot_spots(struct tier1 *tier, uint32_t cfa_distance)
{
    for (size_t i = 0; i < tier->hot_spot_count; i++) {
        const struct hot_spot *spot = &tier->hot_spots[i];
        emitter_resume(tier->e, cfa_distance);
        emitter_line(tier->e, spot->at);
        x86_label_bind(tier->x86, spot->label);
        x86_mov_constant(tier->x86, X86_RDI, tier->function);
        emitter_call_helper(tier->e, HELPER_HOT);
        x86_jmp(tier->x86, spot->back);
    }
}

/* ---- Statements ---- */

static void compile_set_element(struct tier1 *tier, const struct node *node)
{
    compile_expression(tier, node->left);
    emitter_push(tier->e, X86_RAX);
    compile_expression(tier, node->right);
    emitter_pop(tier->e, X86_RCX);
    x86_store(tier->x86, emitter_element(tier->e, node, X86_RCX), X86_RAX);
}

/* Jump to LABEL unless CONDITION holds. */
static void compile_unless(struct tier1 *tier, const struct node *condition, x86_label label)
{
    compile_expression(tier, condition);
    x86_test(tier->x86, X86_RAX, X86_RAX);
    x86_jcc(tier->x86, X86_EQUAL, label);
}

static void compile_if(struct tier1 *tier, const struct node *node)
{
    x86_label otherwise = x86_label_new(tier->x86), end = x86_label_new(tier->x86);
    compile_unless(tier, node->left, otherwise);
    compile_statement(tier, node->right);
    if (node->other)
        x86_jmp(tier->x86, end);
    x86_label_bind(tier->x86, otherwise);
    if (node->other)
        compile_statement(tier, node->other);
    x86_label_bind(tier->x86, end);
}

static void compile_while(struct tier1 *tier, const struct node *node)
{
    x86_label top = x86_label_new(tier->x86), end = x86_label_new(tier->x86);
    x86_label_bind(tier->x86, top);
    compile_unless(tier, node->left, end);
    compile_statement(tier, node->right);
    emitter_line(tier->e, node->at);
    compile_count(tier, offsetof(struct function_slot, loops_left), node->at);
    emitter_poll(tier->e);
    x86_jmp(tier->x86, top);
    x86_label_bind(tier->x86, end);
}

static void compile_statement(struct tier1 *tier, const struct node *node)
{
    if (node->kind != NODE_BLOCK)
        emitter_line(tier->e, node->at);
    switch (node->kind) {
    case NODE_SET_LOCAL:
        compile_expression(tier, node->right);
        x86_store(tier->x86, emitter_local(tier->e, node->index), X86_RAX);
        break;
    case NODE_SET_GLOBAL:
        compile_expression(tier, node->right);
        x86_store(tier->x86, emitter_cell(tier->e, node->index), X86_RAX);
        break;
    case NODE_SET_ELEMENT:
        compile_set_element(tier, node);
        break;
    case NODE_IF:
        compile_if(tier, node);
        break;
    case NODE_WHILE:
        compile_while(tier, node);
        break;
    case NODE_RETURN:
        compile_expression(tier, node->left);
        x86_jmp(tier->x86, tier->epilogue);
        break;
    case NODE_DISCARD:
        compile_expression(tier, node->left);
        break;
    default:
        for (const struct node *item = node->items; item; item = item->next)
            compile_statement(tier, item);
    }
}

void tier1_compile(struct emitter *e, uint32_t function_number)
{
    const struct function *function = &e->program->functions[function_number];
    struct tier1 tier = {.e = e, .x86 = &e->x86, .function = function_number};
    tier.epilogue = x86_label_new(&e->x86);
    emitter_line(e, function->at);
    emitter_enter(e, NULL, 0, function->local_count);
    emitter_stack_check(e, function->at);
    for (uint32_t i = 0; i < function->parameter_count; i++)
        x86_store(&e->x86, emitter_local(e, i), emitter_argument_registers[i]);
    compile_count(&tier, offsetof(struct function_slot, calls_left), function->at);
    uint32_t cfa_distance = e->cfa_distance;
    compile_statement(&tier, function->body);
    emitter_line(e, function->at);
    x86_mov_constant(&e->x86, X86_RAX, 0); /* what a function returns that ends without return */
    x86_label_bind(&e->x86, tier.epilogue);
    emitter_leave(e);
    compile_hot_spots(&tier, cfa_distance);
    emitter_failures(e);
    free(tier.hot_spots);
}
