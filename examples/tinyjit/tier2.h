/* Tier 2's two halves: tier2.c (statements, the function) and tier2_expression.c. */
#ifndef TINYJIT_TIER2_H
#define TINYJIT_TIER2_H

#include "examples/tinyjit/register_homes.h"
#include "examples/tinyjit/tiers.h"

struct tier2 {
    struct emitter *e;
    struct x86_assembler *x86;
    const struct function *function; /* as it was expanded */
    struct register_homes homes;
    x86_label end; /* where return goes: the epilogue, or behind the function that was inlined */
    const struct node *last; /* the function's last statement, behind which is the end anyway */
};

/* What an instruction can take as its source. */
struct operand {
    enum { OPERAND_CONSTANT, OPERAND_REGISTER, OPERAND_MEMORY } kind;
    int32_t constant;
    enum x86_register reg;
    struct x86_memory memory;
};

void tier2_load(struct tier2 *tier, enum x86_register to, struct operand from);

/* Compute NODE into TO, which is no temporary (see tier2_expression.c); nothing is held in temporaries now. */
void tier2_value_to(struct tier2 *tier, const struct node *node, enum x86_register to);

/* Compute NODE; nothing is held in temporaries now.  A memory operand is good until rsp moves. */
struct operand tier2_operand(struct tier2 *tier, const struct node *node);

/* TO = TO OPERATION RIGHT for a binary NODE; nothing is held in temporaries now. */
void tier2_apply_to(struct tier2 *tier, const struct node *node, enum x86_register to);

/* cells[left] = right. */
void tier2_set_element(struct tier2 *tier, const struct node *node);

/* Compute an inlined call's value into rax; nothing is held in temporaries now. */
void tier2_inlined(struct tier2 *tier, const struct node *node);

/* Jump to LABEL if NODE is true (WHEN) or false (not WHEN). */
void tier2_branch(struct tier2 *tier, const struct node *node, bool when, x86_label label);

#endif
