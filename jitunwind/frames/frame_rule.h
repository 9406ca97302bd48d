/* How to go from a frame to its caller's, and how that is made of call frame instructions.
 *
 * The CFA is a register and an offset, and the return address and the saved registers are at
 * multiples of 8 from it.  Nearly all compiler output has this form.  It can be applied in a signal
 * handler in a few loads.
 */
#ifndef JITUNWIND_FRAME_RULE_H
#define JITUNWIND_FRAME_RULE_H

#include "jitdump/format/cfa_instruction.h"
#include "jitdump/format/eh_entry.h"
#include "jitunwind/frames/machine.h"

enum frame_rule_kind {
    RULE_UNKNOWN, /* it is of another form */
    RULE_OFFSET,  /* as above */
    RULE_PLT,     /* x86-64's procedure linkage table: the CFA is rsp + 8, and 8 more from byte
                     cfa_offset of each 16 on */
};

enum { SLOT_SAME = INT16_MAX, SLOT_UNDEFINED = INT16_MIN, SLOT_UNKNOWN = INT16_MIN + 1 };

struct frame_rule {
    int32_t cfa_offset;
    uint8_t cfa_register;
    uint8_t kind;
    int16_t slots[MACHINE_SAVED]; /* by machine_saved, in 8 bytes from the CFA, or one of those */
};

/* Running the instructions of an entry, row by row. */
enum { FRAME_REMEMBERED = 8 };

struct frame_run {
    const struct cfi_entry *entry;
    struct cfa_decoder decoder;
    struct frame_rule now, initial; /* but for the CFA */
    struct cfa_rule cfa;
    struct frame_rule remembered[FRAME_REMEMBERED];
    struct cfa_rule remembered_cfas[FRAME_REMEMBERED];
    unsigned remembered_count;
    uint32_t budget; /* instructions that may still be run */
    uint64_t offset; /* of the row that is being made */
    bool failed, ended;
};

/* Begin with ENTRY, which outlives RUN. */
void ju_frame_run_begin(struct frame_run *run, const struct cfi_entry *entry, uint32_t budget);

/* The next row: *RULE holds from *FROM up to *TO, offsets in the code.  Returns false at the end,
 * and at instructions that make no sense (run->failed). */
bool ju_frame_run_next(struct frame_run *run, uint64_t *from, uint64_t *to,
                       struct frame_rule *rule);

#endif
