/* Tier 2: statements and the function around them. */
#include "examples/tinyjit/tier2.h"

#include "examples/tinyjit/arithmetic.h"
#include "examples/tinyjit/constant.h"
#include "examples/tinyjit/inliner.h"

static void compile_statement(struct tier2 *tier, const struct node *node);

static const struct home *home_of(const struct tier2 *tier, const struct node *node)
{
    return &tier->homes.homes[node->index];
}

static void store_value(struct tier2 *tier, const struct node *value, struct x86_memory to)
{
    struct operand operand = tier2_operand(tier, value);
    if (operand.kind == OPERAND_CONSTANT) {
        x86_store_constant(tier->x86, to, operand.constant);
        return;
    }
    if (operand.kind == OPERAND_MEMORY) {
        tier2_load(tier, X86_RAX, operand);
        operand.reg = X86_RAX;
    }
    x86_store(tier->x86, to, operand.reg);
}

/* x = x + ...: in place. */
static bool is_update(const struct node *node)
{
    const struct node *value = node->right;
    int64_t ignored;
    return value->kind == NODE_BINARY && value->operation <= OP_SHR &&
           value->left->kind == NODE_LOCAL && value->left->index == node->index &&
           !constant_value(value, &ignored);
}

static void compile_set_local(struct tier2 *tier, const struct node *node)
{
    const struct home *home = home_of(tier, node);
    if (!home->in_register)
        store_value(tier, node->right, emitter_local(tier->e, home->frame_local));
    else if (is_update(node))
        tier2_apply_to(tier, node->right, home->reg);
    else
        tier2_value_to(tier, node->right, home->reg);
}

static void compile_if(struct tier2 *tier, const struct node *node)
{
    int64_t condition;
    if (constant_value(node->left, &condition)) {
        if (condition)
            compile_statement(tier, node->right);
        else if (node->other)
            compile_statement(tier, node->other);
        return;
    }
    x86_label otherwise = x86_label_new(tier->x86), end = x86_label_new(tier->x86);
    tier2_branch(tier, node->left, false, otherwise);
    compile_statement(tier, node->right);
    if (node->other)
        x86_jmp(tier->x86, end);
    x86_label_bind(tier->x86, otherwise);
    if (node->other)
        compile_statement(tier, node->other);
    x86_label_bind(tier->x86, end);
}

static bool has_call_or_loop(const struct node *node)
{
    if (!node)
        return false;
    if (node->kind == NODE_WHILE || node->kind == NODE_CALL || node->kind == NODE_CALL_VALUE ||
        node->kind == NODE_BUILTIN)
        return true;
    for (const struct node *item = node->items; item; item = item->next)
        if (has_call_or_loop(item))
            return true;
    return has_call_or_loop(node->left) || has_call_or_loop(node->right) ||
           has_call_or_loop(node->other);
}

/* The condition stands at both ends, so that a round takes one jump.  Innermost loops, whose rounds are a few
 * instructions, don't poll: what is around them does. */
static void compile_while(struct tier2 *tier, const struct node *node)
{
    x86_label top = x86_label_new(tier->x86), end = x86_label_new(tier->x86);
    int64_t condition = 1;
    if (constant_value(node->left, &condition) && !condition)
        return;
    tier2_branch(tier, node->left, false, end);
    x86_label_bind(tier->x86, top);
    compile_statement(tier, node->right);
    emitter_line(tier->e, node->at);
    if (has_call_or_loop(node->left) || has_call_or_loop(node->right))
        emitter_poll(tier->e);
    tier2_branch(tier, node->left, true, top);
    x86_label_bind(tier->x86, end);
}

static void compile_return(struct tier2 *tier, const struct node *node)
{
    tier2_value_to(tier, node->left, X86_RAX);
    if (node != tier->last)
        x86_jmp(tier->x86, tier->end);
}

static void compile_statement(struct tier2 *tier, const struct node *node)
{
    if (node->kind != NODE_BLOCK)
        emitter_line(tier->e, node->at);
    switch (node->kind) {
    case NODE_SET_LOCAL:
        compile_set_local(tier, node);
        break;
    case NODE_SET_GLOBAL:
        store_value(tier, node->right, emitter_cell(tier->e, node->index));
        break;
    case NODE_SET_ELEMENT:
        tier2_set_element(tier, node);
        break;
    case NODE_IF:
        compile_if(tier, node);
        break;
    case NODE_WHILE:
        compile_while(tier, node);
        break;
    case NODE_RETURN:
        compile_return(tier, node);
        break;
    case NODE_DISCARD:
        tier2_operand(tier, node->left);
        break;
    default:
        for (const struct node *item = node->items; item; item = item->next)
            compile_statement(tier, item);
    }
}

static const struct node *last_statement(const struct node *block)
{
    const struct node *last = NULL;
    for (const struct node *item = block->items; item; item = item->next)
        last = item;
    return last;
}

/* The statements of a function at AT.  Behind them is the place that its returns jump to, with the
 * value in rax. */
static void compile_body(struct tier2 *tier, const struct node *body, struct position at)
{
    tier->end = x86_label_new(tier->x86);
    tier->last = last_statement(body);
    compile_statement(tier, body);
    emitter_line(tier->e, at);
    if (!tier->last || tier->last->kind != NODE_RETURN)
        x86_mov_constant(tier->x86, X86_RAX, 0);
    x86_label_bind(tier->x86, tier->end);
}

/* The arguments are the caller's business, and so are their instructions. */
void tier2_inlined(struct tier2 *tier, const struct node *node)
{
    const struct function *function = &tier->e->program->functions[node->index];
    const struct position around = tier->e->at;
    const struct tier2 outer = *tier;
    for (const struct node *item = node->items; item; item = item->next)
        compile_set_local(tier, item);
    emitter_begin_inline(tier->e, function, node->at);
    compile_body(tier, node->other, function->at);
    emitter_end_inline(tier->e);
    emitter_line(tier->e, around);
    tier->end = outer.end;
    tier->last = outer.last;
}

/* Parameters come in registers that calls destroy: bring them home. */
static void take_parameters(struct tier2 *tier)
{
    for (uint32_t i = 0; i < tier->function->parameter_count; i++) {
        const struct home *home = &tier->homes.homes[i];
        if (home->in_register)
            x86_mov(tier->x86, home->reg, emitter_argument_registers[i]);
        else if (home->uses)
            x86_store(tier->x86, emitter_local(tier->e, home->frame_local),
                      emitter_argument_registers[i]);
    }
}

static void compile_function(struct emitter *e, const struct function *function)
{
    struct tier2 tier = {.e = e, .x86 = &e->x86, .function = function};
    register_homes_assign(&tier.homes, function, e->frame.pointer);
    emitter_line(e, function->at);
    emitter_enter(e, tier.homes.used, tier.homes.used_count, tier.homes.frame_locals);
    emitter_stack_check(e, function->at);
    take_parameters(&tier);
    compile_body(&tier, function->body, function->at);
    emitter_leave(e);
    emitter_failures(e);
    register_homes_free(&tier.homes);
}

void tier2_compile(struct emitter *e, uint32_t function)
{
    if (!e->inlining) {
        compile_function(e, &e->program->functions[function]);
        return;
    }
    struct expansion expansion;
    inliner_expand(&expansion, e->program, function);
    compile_function(e, &expansion.function);
    inliner_free(&expansion);
}
