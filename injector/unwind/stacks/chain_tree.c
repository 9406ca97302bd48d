/* See chain_tree.h. */
#include "injector/unwind/stacks/chain_tree.h"

#include "injector/arrays/array.h"

#include <stdlib.h>

static size_t place_of(const struct chain_tree *tree, uint64_t ip, uint32_t caller)
{
    uint64_t mixed = (ip ^ (uint64_t)caller << 40 ^ caller) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(mixed >> 20) & (tree->size - 1);
    while (tree->numbers[at] && (tree->nodes[tree->numbers[at]].ip != ip ||
                                 tree->nodes[tree->numbers[at]].caller != caller))
        at = (at + 1) & (tree->size - 1);
    return at;
}

static int enlarge(struct chain_tree *tree)
{
    struct chain_tree larger = *tree;
    larger.size = tree->size ? tree->size * 4 : 1024;
    larger.numbers = calloc(larger.size, sizeof *larger.numbers);
    if (!larger.numbers)
        return -1;
    for (size_t i = 1; i < tree->count; i++)
        larger.numbers[place_of(&larger, tree->nodes[i].ip, tree->nodes[i].caller)] = (uint32_t)i;
    free(tree->numbers);
    *tree = larger;
    return 0;
}

static int append(struct chain_tree *tree, struct chain_node node)
{
    struct chain_node *nodes = array_room(tree->nodes, tree->count, &tree->capacity, sizeof *nodes);
    if (!nodes || tree->count >= UINT32_MAX)
        return -1;
    tree->nodes = nodes;
    nodes[tree->count++] = node;
    return 0;
}

/* The node of IP called by CALLER. */
static uint32_t find_or_add(struct chain_tree *tree, uint64_t ip, uint32_t caller)
{
    if (2 * (tree->count + 1) > tree->size && enlarge(tree))
        return UINT32_MAX;
    size_t at = place_of(tree, ip, caller);
    if (tree->numbers[at])
        return tree->numbers[at];
    if (append(tree, (struct chain_node){ip, caller, tree->nodes[caller].length + 1}))
        return UINT32_MAX;
    tree->numbers[at] = (uint32_t)(tree->count - 1);
    return tree->numbers[at];
}

uint32_t chain_tree_add(struct chain_tree *tree, const uint64_t *ips, size_t count)
{
    uint32_t node = 0;
    if (tree->count == 0 && append(tree, (struct chain_node){0}))
        return UINT32_MAX;
    while (count && node != UINT32_MAX)
        node = find_or_add(tree, ips[--count], node);
    return node;
}

void chain_tree_free(struct chain_tree *tree)
{
    free(tree->nodes);
    free(tree->numbers);
    *tree = (struct chain_tree){0};
}
