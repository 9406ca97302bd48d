/* See dump_machine.h. */
#include "injector/jit/dump_machine.h"

#include "injector/perf_data/perf_format.h"

#include <elf.h>
#include <inttypes.h>
#include <string.h>

enum byte_order { LITTLE, BIG, EITHER };

/* What uname -m, which perf record notes, says of machines that perf runs on. */
static const struct machine {
    const char *arch;
    uint16_t elf_mach;
    uint16_t compat; /* of 32-bit programs that can run there; 0: the same number */
    uint8_t address_bytes;
    uint8_t order; /* enum byte_order */
} machines[] = {
    {"x86_64", EM_X86_64, EM_386, 8, LITTLE}, {"aarch64", EM_AARCH64, EM_ARM, 8, EITHER},
    {"arm64", EM_AARCH64, EM_ARM, 8, EITHER}, {"s390x", EM_S390, 0, 8, BIG},
    {"ppc64le", EM_PPC64, 0, 8, LITTLE},      {"ppc64", EM_PPC64, EM_PPC, 8, BIG},
    {"riscv64", EM_RISCV, 0, 8, LITTLE},      {"loongarch64", 258, 0, 8, LITTLE},
    {"mips64", EM_MIPS, 0, 8, EITHER},        {"sparc64", EM_SPARCV9, EM_SPARC32PLUS, 8, BIG},
    {"i386", EM_386, 0, 4, LITTLE},           {"i686", EM_386, 0, 4, LITTLE},
    {"armv7l", EM_ARM, 0, 4, LITTLE},         {"armv6l", EM_ARM, 0, 4, LITTLE},
    {"armv8l", EM_ARM, 0, 4, LITTLE},         {"ppc", EM_PPC, 0, 4, BIG},
    {"mips", EM_MIPS, 0, 4, EITHER},          {"riscv32", EM_RISCV, 0, 4, LITTLE},
};

static const struct machine *machine_of(const char *arch, size_t bytes)
{
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++)
        if (strlen(machines[i].arch) == bytes && memcmp(machines[i].arch, arch, bytes) == 0)
            return &machines[i];
    return NULL;
}

void dump_machine_correct(struct jit_dump *dump, const struct perf_file *profile,
                          struct findings *findings)
{
    size_t bytes;
    const char *arch = perf_file_string(profile, PERF_FEATURE_ARCH, &bytes);
    const struct machine *machine = arch ? machine_of(arch, bytes) : NULL;
    bool other_order =
        machine && machine->order != EITHER && (machine->order == BIG) != dump->big_endian;
    if (!machine || other_order || (machine->compat && dump->elf_mach == machine->compat))
        return;
    if (dump->elf_mach != machine->elf_mach)
        repaired(findings, QUIRK_ELF_MACHINE, "%s: elf_mach %" PRIu32 ", recorded on %s",
                 dump->path, dump->elf_mach, machine->arch);
    dump->elf_mach = machine->elf_mach;
    /* QUIRK_ELF_CLASS may have found more than the number tells. */
    if (!(dump->quirks & quirk_bit(QUIRK_ELF_CLASS)))
        dump->address_bytes = machine->address_bytes;
}
