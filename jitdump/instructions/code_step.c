/* See code_step.h. */
#include "jitdump/instructions/code_step.h"

const struct code_machine *jd_code_machine(uint32_t elf_mach)
{
    static const struct code_machine *const machines[] = {
        &jd_machine_x86_64,
        &jd_machine_aarch64,
    };
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++)
        if (machines[i]->elf_mach == elf_mach)
            return machines[i];
    return NULL;
}
