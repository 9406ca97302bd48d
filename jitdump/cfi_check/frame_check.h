/* Whether unwind tables say of a function's frame what its instructions do with the stack.
 *
 * The instructions are followed from the function's entry, over direct jumps, and from where an FDE
 * begins in code that was not reached so.  At each one the state of registers and stack
 * (code_state.h) is compared with the row (frame_rows.h).  Only known values can contradict.  There
 * is no result if the stack pointer comes from memory or an unknown instruction, behind an indirect
 * jump, and in code that nothing leads to.  An entry whose row is not that of a call, code that is
 * jumped to inside of a frame which others made, is taken as the row has it.
 *
 *     CFA              the row's register is known to be at another distance, or to be the caller's
 *     saved register   where the row says that it is stored, there is another one's value, or
 *                      nothing was ever stored, and the value is known to be elsewhere
 *                      the row says that the register still has the caller's value; it had not,
 *                      and got it back from the stack before the function returned
 *     signature        the return address is signed, and the row does not say so, or the reverse
 */
#ifndef JITDUMP_FRAME_CHECK_H
#define JITDUMP_FRAME_CHECK_H

#include "jitdump/cfi_check/frame_rows.h"

enum { FAULT_TEXT_BYTES = 200 };

/* What was found. */
struct frame_check {
    bool wrong;
    uint64_t fault_at;            /* the first instruction that the row does not fit, an offset, */
    char fault[FAULT_TEXT_BYTES]; /* and why: "at +0x1c (pop %rbx): the CFA is rsp+24 here, ..." */
    bool on_trust;                /* the function is entered inside of a frame */
    uint64_t compared;            /* instructions */
    uint64_t beyond; /* the first offset at which a row could not be compared, or UINT64_MAX */
};

/* Compare the SIZE bytes at CODE with the COUNT FDEs, ascending.  Returns 0, -ENOMEM, or -EFBIG for
 * code that is too large to be followed. */
int jd_frame_check(struct frame_check *check, const struct code_machine *machine,
                   const struct frame_fde *fdes, size_t count, const void *code, uint64_t size);

/* The same with tables as jitdump_code.unwind has them, of the code at CODE_ADDR.  Tables that
 * can't be read are none. */
int jd_tables_check(struct frame_check *check, const struct code_machine *machine,
                    const void *tables, uint64_t tables_bytes, uint64_t hdr_bytes, const void *code,
                    uint64_t code_addr, uint64_t size);

#endif
