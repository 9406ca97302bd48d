/* Registers by their numbers in instructions: jitdump_dwarf_register of cfi.h. */
#include "jitdump/cfi/cfi_arch.h"

#include <errno.h>

int jitdump_dwarf_register(enum jitdump_arch arch, unsigned encoding)
{
    const struct cfi_arch *table = cfi_arch_of(arch);
    int number =
        table ? table->dwarf_register(encoding & ~JITDUMP_VECTOR, encoding & JITDUMP_VECTOR) : -1;
    return number < 0 ? -EINVAL : number;
}
