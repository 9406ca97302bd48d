/* The rows of unwind tables: from this instruction on the CFA and the saved registers are there. */
#ifndef JITDUMP_FRAME_ROWS_H
#define JITDUMP_FRAME_ROWS_H

#include "jitdump/format/eh_frame.h"
#include "jitdump/instructions/code_step.h"

/* An FDE of a function: START is in bytes from its first instruction. */
struct frame_fde {
    uint64_t start, size;
    const struct eh_cie *cie;
    const uint8_t *instructions;
    size_t instructions_bytes;
};

enum frame_rule_kind {
    RULE_SAME,
    RULE_AT,       /* stored at CFA + offset */
    RULE_REGISTER, /* in reg */
    RULE_OTHER,    /* lost, an expression, ...: not looked at */
};

struct frame_rule {
    int32_t offset;
    uint8_t kind;
    uint8_t reg;
};

enum { FRAME_SAVED_MAX = 20 };

struct frame_row {
    uint64_t start;
    bool covered;   /* by an FDE */
    bool begins;    /* an FDE does */
    bool cfa_known; /* it is a register and an offset */
    bool address_signed;
    uint8_t cfa_register;
    int32_t cfa_offset;
    struct frame_rule rules[FRAME_SAVED_MAX]; /* of the machine's saved registers */
};

struct frame_rows {
    struct frame_row *rows; /* ascending; the last one is not covered */
    size_t count, capacity;
};

/* Run COUNT FDEs, ascending, of a function of SIZE bytes.  Returns 0 or -ENOMEM.  An FDE that makes
 * no sense covers nothing. */
int jd_frame_rows_make(struct frame_rows *rows, const struct code_machine *machine,
                       const struct frame_fde *fdes, size_t count, uint64_t size);

void jd_frame_rows_free(struct frame_rows *rows);

/* The row of the instruction at AT. */
const struct frame_row *jd_frame_row_at(const struct frame_rows *rows, uint64_t at);

#endif
