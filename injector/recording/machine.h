/* The machines that perf runs on, by what uname -m calls them, which perf record notes. */
#ifndef PERFJIT_MACHINE_H
#define PERFJIT_MACHINE_H

#include <stddef.h>
#include <stdint.h>

enum byte_order { LITTLE, BIG, EITHER };

struct machine {
    const char *arch;
    uint16_t elf_mach;
    uint16_t compat; /* of 32-bit programs that can run there; 0: the same number */
    uint8_t address_bytes;
    uint8_t order; /* enum byte_order */
};

/* The machine called ARCH, of BYTES letters, or NULL. */
const struct machine *machine_of(const char *arch, size_t bytes);

/* How wide addresses are where nothing but ELF_MACH is known. */
uint8_t machine_address_bytes(uint32_t elf_mach);

/* The number of the machine of 64 bits that runs programs of ELF_MACH; or ELF_MACH. */
uint32_t machine_wide(uint32_t elf_mach);

#endif
