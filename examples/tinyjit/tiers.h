/* The two compilers. */
#ifndef TINYJIT_TIERS_H
#define TINYJIT_TIERS_H

#include "examples/tinyjit/emitter.h"

/* Write FUNCTION's code into E, which is just opened.
 *
 * Tier 1 is quick and plain: each value goes through rax and the stack, each local variable lives in the frame.
 * If e->counting, the code counts its calls and loop rounds and asks the runtime for tier 2 when it is hot. */
void tier1_compile(struct emitter *e, uint32_t function);

/* Tier 2 keeps values and the busiest variables in registers, computes constants beforehand, and compares and
 * branches in one.  If e->inlining, small functions stand where they are called (inliner.h). */
void tier2_compile(struct emitter *e, uint32_t function);

#endif
