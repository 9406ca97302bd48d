/* Names of kernel code, by /proc/kallsyms: for recordings of this machine since it booted.
 *
 *     ffffffff81000000 T _text
 *     ffffffffc0000000 t ext4_map_blocks [ext4]
 * A line is valid if it has an address, a letter and a name.  If the kernel hides its addresses,
 * all of them are 0, and there are no names. */
#ifndef PERFJIT_KERNEL_SYMBOLS_H
#define PERFJIT_KERNEL_SYMBOLS_H

#include "injector/files/memory_file.h"

#include <stddef.h>
#include <stdint.h>

struct kernel_symbol {
    uint64_t addr;
    size_t name; /* where it begins in the text */
};

/* Addresses of the kernel itself, without its modules.  0: the symbol is not in the list. */
struct kernel_core {
    uint64_t text, stext, etext; /* of the symbols _text, _stext, _etext */
};

struct kernel_symbols {
    struct kernel_symbol *items; /* by addr */
    size_t count, capacity;
    struct kernel_core core;
    struct memory_file file;
    char *text; /* the file's, in which names end with a NUL */
};

/* Read the file at PATH.  An unreadable file gives no symbols.  Returns 0, or -1 without memory.
 * Release with kernel_symbols_free in either case. */
int kernel_symbols_read(struct kernel_symbols *symbols, const char *path);

/* The name of the function at ADDR; NULL: none. */
const char *kernel_symbols_at(const struct kernel_symbols *symbols, uint64_t addr);

void kernel_symbols_free(struct kernel_symbols *symbols);

#endif
