/* See machine.h. */
#include "injector/recording/machine.h"

#include <elf.h>
#include <string.h>

/* Of those that share a number, the first is what a header with it means: mips, but riscv64. */
static const struct machine machines[] = {
    {"x86_64", EM_X86_64, EM_386, 8, LITTLE}, {"aarch64", EM_AARCH64, EM_ARM, 8, EITHER},
    {"arm64", EM_AARCH64, EM_ARM, 8, EITHER}, {"s390x", EM_S390, 0, 8, BIG},
    {"ppc64le", EM_PPC64, 0, 8, LITTLE},      {"ppc64", EM_PPC64, EM_PPC, 8, BIG},
    {"riscv64", EM_RISCV, 0, 8, LITTLE},      {"loongarch64", 258, 0, 8, LITTLE},
    {"mips", EM_MIPS, 0, 4, EITHER},          {"sparc64", EM_SPARCV9, EM_SPARC32PLUS, 8, BIG},
    {"i386", EM_386, 0, 4, LITTLE},           {"i486", EM_386, 0, 4, LITTLE},
    {"i586", EM_386, 0, 4, LITTLE},           {"i686", EM_386, 0, 4, LITTLE},
    {"armv7l", EM_ARM, 0, 4, LITTLE},         {"armv6l", EM_ARM, 0, 4, LITTLE},
    {"armv8l", EM_ARM, 0, 4, LITTLE},         {"ppc", EM_PPC, 0, 4, BIG},
    {"mips64", EM_MIPS, 0, 8, EITHER},        {"riscv32", EM_RISCV, 0, 4, LITTLE},
};

uint8_t machine_address_bytes(uint32_t elf_mach)
{
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++)
        if (machines[i].elf_mach == elf_mach)
            return machines[i].address_bytes;
    return 8;
}

uint32_t machine_wide(uint32_t elf_mach)
{
    for (size_t i = 0; elf_mach && i < sizeof machines / sizeof machines[0]; i++)
        if (machines[i].compat == elf_mach)
            return machines[i].elf_mach;
    return elf_mach;
}

const struct machine *machine_of(const char *arch, size_t bytes)
{
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++)
        if (strlen(machines[i].arch) == bytes && memcmp(machines[i].arch, arch, bytes) == 0)
            return &machines[i];
    return NULL;
}
