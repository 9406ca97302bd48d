/* See machine.h. */
#include "injector/perf_data/machine.h"

#include <elf.h>
#include <string.h>

static const struct machine machines[] = {
    {"x86_64", EM_X86_64, EM_386, 8, LITTLE}, {"aarch64", EM_AARCH64, EM_ARM, 8, EITHER},
    {"arm64", EM_AARCH64, EM_ARM, 8, EITHER}, {"s390x", EM_S390, 0, 8, BIG},
    {"ppc64le", EM_PPC64, 0, 8, LITTLE},      {"ppc64", EM_PPC64, EM_PPC, 8, BIG},
    {"riscv64", EM_RISCV, 0, 8, LITTLE},      {"loongarch64", 258, 0, 8, LITTLE},
    {"mips64", EM_MIPS, 0, 8, EITHER},        {"sparc64", EM_SPARCV9, EM_SPARC32PLUS, 8, BIG},
    {"i386", EM_386, 0, 4, LITTLE},           {"i486", EM_386, 0, 4, LITTLE},
    {"i586", EM_386, 0, 4, LITTLE},           {"i686", EM_386, 0, 4, LITTLE},
    {"armv7l", EM_ARM, 0, 4, LITTLE},         {"armv6l", EM_ARM, 0, 4, LITTLE},
    {"armv8l", EM_ARM, 0, 4, LITTLE},         {"ppc", EM_PPC, 0, 4, BIG},
    {"mips", EM_MIPS, 0, 4, EITHER},          {"riscv32", EM_RISCV, 0, 4, LITTLE},
};

const struct machine *machine_of(const char *arch, size_t bytes)
{
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++)
        if (strlen(machines[i].arch) == bytes && memcmp(machines[i].arch, arch, bytes) == 0)
            return &machines[i];
    return NULL;
}
