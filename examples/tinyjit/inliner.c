/* See inliner.h. */
#include "examples/tinyjit/inliner.h"

#include "examples/tinyjit/memory.h"

#include <stdbool.h>

/* Measured in nodes of the syntax tree.  A function that is so large that its code may hardly fit stays as it is. */
enum {
    MAX_CALLEE_NODES = 48,
    MAX_COPIED_NODES = 400,
    MAX_CALLER_NODES = 4000,
    MAX_COPIES_NESTED = 4
};

struct node_list {
    struct node_list *next;
    struct node node;
};

struct inliner {
    const struct program *program;
    struct expansion *expansion;
    uint32_t chain[MAX_COPIES_NESTED + 1]; /* the function itself, and what is being copied now */
    uint32_t chain_length;
    uint32_t nodes_left; /* that may still be copied from other functions */
};

/* ---- What is worth it ---- */

/* How many nodes the tree has, but not more than LIMIT + 1. */
static uint32_t count_nodes(const struct node *node, uint32_t limit)
{
    if (!node)
        return 0;
    uint32_t count = 1;
    const struct node *const children[] = {node->left, node->right, node->other};
    for (size_t i = 0; i < 3 && count <= limit; i++)
        count += count_nodes(children[i], limit - count);
    for (const struct node *item = node->items; item && count <= limit; item = item->next)
        count += count_nodes(item, limit - count);
    return count;
}

static bool has_call_of(const struct node *node, uint32_t function)
{
    if (!node)
        return false;
    if (node->kind == NODE_CALL && node->index == function)
        return true;
    for (const struct node *item = node->items; item; item = item->next)
        if (has_call_of(item, function))
            return true;
    return has_call_of(node->left, function) || has_call_of(node->right, function) ||
           has_call_of(node->other, function);
}

static bool is_in_chain(const struct inliner *inliner, uint32_t function)
{
    for (uint32_t i = 0; i < inliner->chain_length; i++)
        if (inliner->chain[i] == function)
            return true;
    return false;
}

/* Takes what the copy costs from nodes_left. */
static bool take_callee(struct inliner *inliner, uint32_t function)
{
    const struct node *body = inliner->program->functions[function].body;
    if (inliner->chain_length > MAX_COPIES_NESTED || is_in_chain(inliner, function))
        return false;
    uint32_t nodes = count_nodes(body, MAX_CALLEE_NODES);
    if (nodes > MAX_CALLEE_NODES || nodes > inliner->nodes_left || has_call_of(body, function))
        return false;
    inliner->nodes_left -= nodes;
    return true;
}

/* ---- Copying ---- */

static struct node *copy_tree(struct inliner *inliner, const struct node *node,
                              uint32_t first_local);

static struct node *new_node(struct inliner *inliner, struct node node)
{
    struct node_list *entry = memory_new(1, sizeof *entry);
    entry->next = inliner->expansion->nodes;
    entry->node = node;
    inliner->expansion->nodes = entry;
    return &entry->node;
}

static struct node *copy_items(struct inliner *inliner, const struct node *items,
                               uint32_t first_local)
{
    struct node *first = NULL, **end = &first;
    for (; items; items = items->next) {
        *end = copy_tree(inliner, items, first_local);
        end = &(*end)->next;
    }
    return first;
}

/* Make of the arguments assignments to the variables from FIRST_LOCAL on. */
static struct node *assign_arguments(struct inliner *inliner, struct node *arguments,
                                     uint32_t first_local)
{
    struct node *first = NULL, **end = &first;
    for (struct node *argument = arguments, *next; argument; argument = next) {
        next = argument->next;
        argument->next = NULL;
        *end = new_node(inliner, (struct node){.kind = NODE_SET_LOCAL,
                                               .at = argument->at,
                                               .index = first_local++,
                                               .right = argument});
        end = &(*end)->next;
    }
    return first;
}

static void inline_call(struct inliner *inliner, struct node *call)
{
    const struct function *callee = &inliner->program->functions[call->index];
    uint32_t first_local = inliner->expansion->function.local_count;
    inliner->expansion->function.local_count += callee->local_count;
    call->kind = NODE_INLINED;
    call->items = assign_arguments(inliner, call->items, first_local);
    inliner->chain[inliner->chain_length++] = call->index;
    call->other = copy_tree(inliner, callee->body, first_local);
    inliner->chain_length--;
}

/* FIRST_LOCAL is what the function's first variable is in the caller. */
static struct node *copy_tree(struct inliner *inliner, const struct node *node,
                              uint32_t first_local)
{
    if (!node)
        return NULL;
    struct node *copy = new_node(inliner, *node);
    copy->next = NULL;
    if (node->kind == NODE_LOCAL || node->kind == NODE_SET_LOCAL)
        copy->index += first_local;
    copy->left = copy_tree(inliner, node->left, first_local);
    copy->right = copy_tree(inliner, node->right, first_local);
    copy->other = copy_tree(inliner, node->other, first_local);
    copy->items = copy_items(inliner, node->items, first_local);
    if (node->kind == NODE_CALL && take_callee(inliner, node->index))
        inline_call(inliner, copy);
    return copy;
}

void inliner_expand(struct expansion *expansion, const struct program *program, uint32_t number)
{
    const struct function *function = &program->functions[number];
    bool is_large = count_nodes(function->body, MAX_CALLER_NODES) > MAX_CALLER_NODES;
    struct inliner inliner = {.program = program,
                              .expansion = expansion,
                              .chain = {number},
                              .chain_length = 1,
                              .nodes_left = is_large ? 0 : MAX_COPIED_NODES};
    *expansion = (struct expansion){.function = *function};
    expansion->function.body = copy_tree(&inliner, function->body, 0);
}

void inliner_free(struct expansion *expansion)
{
    for (struct node_list *entry = expansion->nodes, *next; entry; entry = next) {
        next = entry->next;
        free(entry);
    }
}
