/* The rule of an instruction that has no table, found by following its function's code.
 *
 * The instructions are followed from the function's first one, over direct jumps, until this one is
 * reached (jitdump/instructions).  What they did to the stack tells where the frame ends and where
 * the caller's registers are.  There is no rule behind an indirect jump, behind an instruction that
 * is not known, and where the stack pointer came from memory while no frame pointer is set.
 */
#ifndef PERFJIT_CODE_RULE_H
#define PERFJIT_CODE_RULE_H

#include "injector/unwind/unwind_rule.h"

#include <stddef.h>

/* Fill RULE with the frame at OFFSET, inside of an instruction of the function of SIZE bytes at
 * CODE.  Each instruction that is followed costs BUDGET.  Returns 1, 0 if there is none, or -1
 * without memory. */
int code_rule_find(struct unwind_rule *rule, const struct machine *machine, const uint8_t *code,
                   size_t size, size_t offset, struct unwind_budget *budget);

/* Whether the first of the SIZE bytes at CODE are an instruction that leaves the stack, so that the
 * function can't return to a caller. */
bool code_rule_takes_stack(const struct machine *machine, const uint8_t *code, size_t size);

#endif
