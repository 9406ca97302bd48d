/* See machine.h.  Sources: System V ABI for AMD64, figure 3.36; DWARF for the Arm 64-bit
 * Architecture, section 4.1; Linux, asm/perf_regs.h, struct user_regs_struct and ucontext of both.
 */
#include "injector/recording/machine.h"

#include <elf.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

enum { NONE = UNWIND_NO_REGISTER, LOONGARCH = 258 /* in elf.h since glibc 2.36 */ };

/* If machines share a number, the first one is the meaning of a header with that number: mips, but
 * riscv64. */
static const struct machine machines[] = {
    {.names = {"x86_64"},
     .elf_mach = EM_X86_64,
     .compat = EM_386,
     .address_bytes = 8,
     .order = LITTLE,
     .image_name = "x86_64",
     .sp = 7,
     .fp = 6,
     .return_register = 16,
     .link_register = NONE,
     .least_growth = 8,
     .saved = {16, 6, 3, 12, 13, 14, 15},
     .saved_count = 7,
     .perf_pc = 8,
     .perf_count = 24,
     /* ax bx cx dx si di bp sp ip, flags and segments, r8 to r15 */
     .dwarf_of_perf = {0,    3,    2,    1,    4, 5, 6,  7,  16, NONE, NONE, NONE,
                       NONE, NONE, NONE, NONE, 8, 9, 10, 11, 12, 13,   14,   15},
     .code = CODE_X86_64,
     .address_mask = UINT64_MAX,
     .word_count = 27,
     .word_of_perf = {10, 5, 11, 12, 13, 14, 4, 19, 16, 0, 0, 0,
                      0,  0, 0,  0,  9,  8,  7, 6,  3,  2, 1, 0},
     .context_sp = 160,
     .gdb_pc = "rip",
     .gdb_sp = "rsp",
     .gdb_fp = "rbp"},
    {.names = {"aarch64", "arm64"},
     .elf_mach = EM_AARCH64,
     .compat = EM_ARM,
     .address_bytes = 8,
     .order = EITHER,
     .image_name = "aarch64",
     .sp = 31,
     .fp = 29,
     .return_register = 30,
     .link_register = 30,
     .least_growth = 1,
     .saved = {30, 29, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28},
     .saved_count = 12,
     .perf_pc = 32,
     .perf_count = 33,
     /* x0 to x30, sp, pc */
     .dwarf_of_perf = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,  16,
                       17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, NONE},
     .signs_returns = true,
     .code = CODE_AARCH64,
     .address_mask = (UINT64_C(1) << 48) - 1,
     .word_count = 34,
     .word_of_perf = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
                      17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32},
     .context_sp = 432,
     .gdb_pc = "pc",
     .gdb_sp = "sp",
     .gdb_fp = "x29"},
    {{"s390x"}, EM_S390, 0, 8, BIG, "s390x", .code = CODE_UNKNOWN},
    {{"ppc64le"}, EM_PPC64, 0, 8, LITTLE, "ppc64le", .code = CODE_UNKNOWN},
    {{"ppc64"}, EM_PPC64, EM_PPC, 8, BIG, "ppc64", .code = CODE_UNKNOWN},
    {{"riscv64"}, EM_RISCV, 0, 8, LITTLE, "riscv64", .code = CODE_UNKNOWN},
    {{"loongarch64"}, LOONGARCH, 0, 8, LITTLE, "loongarch64", .code = CODE_UNKNOWN},
    {{"mips"}, EM_MIPS, 0, 4, EITHER, NULL, .code = CODE_UNKNOWN},
    {{"sparc64"}, EM_SPARCV9, EM_SPARC32PLUS, 8, BIG, NULL, .code = CODE_UNKNOWN},
    {{"i386", "i486", "i586", "i686"}, EM_386, 0, 4, LITTLE, "i386", .code = CODE_UNKNOWN},
    {{"armv7l", "armv6l", "armv8l"}, EM_ARM, 0, 4, LITTLE, "arm", .code = CODE_UNKNOWN},
    {{"ppc"}, EM_PPC, 0, 4, BIG, NULL, .code = CODE_UNKNOWN},
    {{"mips64"}, EM_MIPS, 0, 8, EITHER, NULL, .code = CODE_UNKNOWN},
    {{"riscv32"}, EM_RISCV, 0, 4, LITTLE, "riscv32", .code = CODE_UNKNOWN},
};

enum { MACHINES = sizeof machines / sizeof machines[0] };

static bool is_named(const struct machine *machine, const char *name, size_t bytes)
{
    for (size_t i = 0; i < MACHINE_NAMES && machine->names[i]; i++)
        if (strlen(machine->names[i]) == bytes && memcmp(machine->names[i], name, bytes) == 0)
            return true;
    return false;
}

const struct machine *machine_named(const char *name, size_t bytes)
{
    for (size_t i = 0; i < MACHINES; i++)
        if (is_named(&machines[i], name, bytes))
            return &machines[i];
    return NULL;
}

const struct machine *machine_numbered(uint32_t elf_mach)
{
    for (size_t i = 0; i < MACHINES; i++)
        if (machines[i].elf_mach == elf_mach)
            return &machines[i];
    return NULL;
}

const struct machine *machine_of_elf(uint32_t elf_mach, uint8_t address_bytes, bool big_endian)
{
    for (size_t i = 0; i < MACHINES; i++)
        if (machines[i].elf_mach == elf_mach && machines[i].address_bytes == address_bytes &&
            (machines[i].order == EITHER || (machines[i].order == BIG) == big_endian))
            return &machines[i];
    return NULL;
}

/* The linker puts this where the program's ELF header is. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

const struct machine *machine_here(void)
{
    return machine_of_elf(__ehdr_start.e_machine, sizeof(void *),
                          __ehdr_start.e_ident[EI_DATA] == ELFDATA2MSB);
}

uint8_t machine_address_bytes(uint32_t elf_mach)
{
    const struct machine *machine = machine_numbered(elf_mach);
    return machine ? machine->address_bytes : 8;
}

uint32_t machine_wide(uint32_t elf_mach)
{
    for (size_t i = 0; elf_mach && i < MACHINES; i++)
        if (machines[i].compat == elf_mach)
            return machines[i].elf_mach;
    return elf_mach;
}

bool machine_unwinds(const struct machine *machine)
{
    return machine && machine->saved_count;
}

bool machine_has_words(const struct machine *machine)
{
    return machine && machine->word_count;
}

unsigned machine_dwarf_of_perf(const struct machine *machine, unsigned perf)
{
    return perf < machine->perf_count ? machine->dwarf_of_perf[perf] : UNWIND_NO_REGISTER;
}

unsigned machine_perf_of_dwarf(const struct machine *machine, unsigned dwarf)
{
    for (unsigned perf = 0; perf < machine->perf_count; perf++)
        if (machine->dwarf_of_perf[perf] == dwarf)
            return perf;
    return UNWIND_NO_REGISTER;
}

uint64_t machine_perf_mask(const struct machine *machine)
{
    uint64_t mask = UINT64_C(1) << machine->perf_pc;
    for (unsigned perf = 0; perf < machine->perf_count; perf++)
        if (machine->dwarf_of_perf[perf] != UNWIND_NO_REGISTER)
            mask |= UINT64_C(1) << perf;
    return mask;
}

const char *machine_text(char text[MACHINE_TEXT_BYTES], uint32_t elf_mach)
{
    const struct machine *machine = machine_numbered(elf_mach);
    if (machine)
        snprintf(text, MACHINE_TEXT_BYTES, "machine %" PRIu32 " (%s)", elf_mach, machine->names[0]);
    else
        snprintf(text, MACHINE_TEXT_BYTES, "machine %" PRIu32, elf_mach);
    return text;
}
