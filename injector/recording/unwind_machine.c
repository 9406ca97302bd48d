/* See unwind_machine.h.  Sources: System V ABI for AMD64, figure 3.36; DWARF for the Arm 64-bit
 * Architecture, section 4.1; Linux, asm/perf_regs.h of both. */
#include "injector/recording/unwind_machine.h"

#include <elf.h>

enum { NONE = UNWIND_NO_REGISTER };

static const struct unwind_machine machines[] = {
    {.elf_mach = EM_X86_64,
     .sp = 7,
     .fp = 6,
     .return_register = 16,
     .link_register = NONE,
     .least_growth = 8,
     .saved = {16, 6, 3, 12, 13, 14, 15},
     .saved_count = 7,
     .perf_pc = 8,
     /* ax bx cx dx si di bp sp ip, flags and segments, r8 to r15 */
     .dwarf_of_perf = {0,    3,    2,    1,    4,    5,    6,    7,    16,   NONE, NONE, NONE, NONE,
                       NONE, NONE, NONE, 8,    9,    10,   11,   12,   13,   14,   15,   NONE, NONE,
                       NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
                       NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
                       NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE},
     .address_mask = UINT64_MAX},
    {.elf_mach = EM_AARCH64,
     .sp = 31,
     .fp = 29,
     .return_register = 30,
     .link_register = 30,
     .least_growth = 1,
     .saved = {30, 29, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28},
     .saved_count = 12,
     .perf_pc = 32,
     /* x0 to x30, sp, pc */
     .dwarf_of_perf = {0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,
                       13,   14,   15,   16,   17,   18,   19,   20,   21,   22,   23,   24,   25,
                       26,   27,   28,   29,   30,   31,   NONE, NONE, NONE, NONE, NONE, NONE, NONE,
                       NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
                       NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE},
     .address_mask = (UINT64_C(1) << 48) - 1},
};

const struct unwind_machine *unwind_machine_of(uint16_t elf_mach)
{
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++)
        if (machines[i].elf_mach == elf_mach)
            return &machines[i];
    return NULL;
}
