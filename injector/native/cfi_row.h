/* The call frame information of one address: how to find the caller's registers. */
#ifndef PERFJIT_CFI_ROW_H
#define PERFJIT_CFI_ROW_H

#include "injector/recording/machine.h"
#include "jitdump/format/cfa_instruction.h"

#include <stdbool.h>

enum register_rule_kind {
    REGISTER_SAME, /* also for registers that the row does not mention */
    REGISTER_UNDEFINED,
    REGISTER_AT_OFFSET,     /* saved at CFA + offset */
    REGISTER_IS_OFFSET,     /* is CFA + offset */
    REGISTER_IN_REGISTER,   /* number OFFSET */
    REGISTER_AT_EXPRESSION, /* saved where the expression says */
    REGISTER_IS_EXPRESSION,
};

struct register_rule {
    uint8_t kind; /* enum register_rule_kind */
    int64_t offset;
    struct cfa_block expression;
};

struct cfi_row {
    struct register_rule cfa; /* IS_OFFSET: from register cfa_register; or IS_EXPRESSION */
    uint8_t cfa_register;
    uint8_t return_register;
    bool signal_frame;
    struct register_rule registers[UNWIND_REGISTERS];
};

#endif
