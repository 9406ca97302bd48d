/* The effect of one instruction on the known state, and where it leads: one entry for each machine.
 *
 * How to add a machine: a file jitdump/instructions/NAME_step.c with its entry, declared below, and
 * a line in code_step.c. */
#ifndef JITDUMP_CODE_STEP_H
#define JITDUMP_CODE_STEP_H

#include "jitdump/instructions/code_state.h"

enum code_flow {
    FLOW_NEXT,
    FLOW_JUMP,      /* to `target`, and nowhere else */
    FLOW_BRANCH,    /* to `target`, or to the next */
    FLOW_CALL,      /* to the next, if it returns */
    FLOW_RETURN,    /* to the caller */
    FLOW_STOP,      /* nowhere: ud2, int3, brk */
    FLOW_SOMEWHERE, /* an indirect jump */
    FLOW_UNKNOWN,   /* it is not known, or not whole: its size is 0 */
};

struct code_step {
    uint32_t size; /* in bytes */
    enum code_flow flow;
    int64_t target; /* in bytes from the code's begin; may be outside the code */
};

struct code_machine {
    uint32_t elf_mach;
    uint8_t stack_pointer;
    uint8_t return_address; /* the register that it is at the entry, or counts as */
    int8_t entry_offset;    /* the stack pointer at the entry is CFA + this */
    uint8_t saved_count;
    const uint8_t *saved;    /* the registers that a function preserves, and the return address */
    const char (*names)[4];  /* of at most three letters */
    uint8_t plain_registers; /* the registers up to here have DWARF's numbers */
    uint8_t moved_from;      /* DWARF's number of the registers that follow; 0: there are none */
    bool signs_returns;      /* its tables may say that return addresses are signed */

    /* The instruction at offset AT of the SIZE bytes at CODE: change *STATE, unless it is NULL, to
     * what holds after it. */
    struct code_step (*step)(const uint8_t *code, size_t size, size_t at, struct code_state *state);

    /* Whether it does nothing, like filling up to a multiple of 16 bytes. */
    bool (*is_filling)(const uint8_t *code, size_t size, size_t at);

    /* Print the instruction in words if it concerns the stack, else its bytes. */
    void (*print)(const uint8_t *code, size_t size, size_t at, char *text, size_t text_bytes);
};

extern const struct code_machine jd_machine_x86_64;
extern const struct code_machine jd_machine_aarch64;

/* NULL: nothing is known of the machine whose ELF number is ELF_MACH. */
const struct code_machine *jd_code_machine(uint32_t elf_mach);

#endif
