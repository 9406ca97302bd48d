/* What of a machine matters to whoever unwinds its stacks: how DWARF and perf number its
 * registers. */
#ifndef PERFJIT_UNWIND_MACHINE_H
#define PERFJIT_UNWIND_MACHINE_H

#include <stddef.h>
#include <stdint.h>

/* By DWARF's numbers.  x86-64 has 16, and the return address as the 17th; aarch64 has x0 to x30, sp
 * and, as the 33rd here, RA_SIGN_STATE (DWARF's 34). */
enum { UNWIND_REGISTERS = 33, UNWIND_SAVED = 12, UNWIND_NO_REGISTER = 255 };

struct unwind_machine {
    uint16_t elf_mach;
    uint8_t sp, fp;
    uint8_t return_register;     /* the column of the return address */
    uint8_t link_register;       /* that holds it when a function begins; or UNWIND_NO_REGISTER */
    uint8_t least_growth;        /* of the stack, by a frame that has called another */
    uint8_t saved[UNWIND_SAVED]; /* whose places a short rule has, the return address among them */
    uint8_t saved_count;
    uint8_t perf_pc;           /* perf's number of the program counter */
    uint8_t dwarf_of_perf[64]; /* DWARF's number of perf's, or UNWIND_NO_REGISTER */
    uint64_t address_mask;     /* of a user's address: what is left of a signed one */
};

/* The machine of ELF_MACH, or NULL: its stacks can't be unwound. */
const struct unwind_machine *unwind_machine_of(uint16_t elf_mach);

#endif
