/* Call chains, each kept as the way from its outermost frame to its innermost one.  Chains that
 * begin alike share that part.  So memory grows with the number of different chains and not with
 * the samples. */
#ifndef PERFJIT_CHAIN_TREE_H
#define PERFJIT_CHAIN_TREE_H

#include <stddef.h>
#include <stdint.h>

struct chain_node {
    uint64_t ip;
    uint32_t caller; /* a node's number, or 0: none */
    uint32_t length; /* of the chain that ends here */
};

struct chain_tree {
    struct chain_node *nodes; /* by number; the first is no frame */
    size_t count, capacity;
    uint32_t *numbers; /* by hash */
    size_t size;       /* a power of 2 */
};

/* The number of the chain of the COUNT frames at IPS, the innermost first; 0 if there are none.
 * UINT32_MAX without memory. */
uint32_t chain_tree_add(struct chain_tree *tree, const uint64_t *ips, size_t count);

void chain_tree_free(struct chain_tree *tree);

#endif
