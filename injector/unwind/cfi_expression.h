/* DWARF expressions in call frame information: PLT entries, signal frames, stacks that were
 * aligned. */
#ifndef PERFJIT_CFI_EXPRESSION_H
#define PERFJIT_CFI_EXPRESSION_H

#include "injector/native/cfi_program.h"
#include "injector/unwind/user_stack.h"

enum expression_result {
    EXPRESSION_DONE,
    EXPRESSION_CUT,    /* it needs memory that is not in the copy of the stack */
    EXPRESSION_BROKEN, /* it makes no sense, or does not end */
};

/* Evaluate EXPRESSION with the registers of FRAME; INITIAL, unless it is NULL, is the value that it
 * begins with: the CFA. */
enum expression_result cfi_expression_evaluate(const struct cfa_block *expression,
                                               const uint64_t *initial,
                                               const struct unwind_frame *frame,
                                               const struct user_stack *stack,
                                               struct unwind_budget *budget, uint64_t *value);

#endif
