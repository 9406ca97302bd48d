/* Names of kernel code, by /proc/kallsyms: for recordings of this machine since it booted.
 *
 *     ffffffff81000000 T _text
 *     ffffffffc0000000 t ext4_map_blocks [ext4]
 * A line is valid if it has an address, a letter and a name.  If the kernel hides its addresses,
 * all of them are 0, and there are no names.
 *
 * A function has no size.  It ends at the next symbol, whatever that is, but for values that are no
 * addresses (letter A).  The last function of a section ends with the page behind it, as in perf:
 * where symbols of the kernel and of modules meet, at the end of the kernel's text, and at the end
 * of the list.  Behind it may be a module that came later, or a BPF program. */
#ifndef PERFJIT_KERNEL_SYMBOLS_H
#define PERFJIT_KERNEL_SYMBOLS_H

#include "injector/files/memory_file.h"

#include <stddef.h>
#include <stdint.h>

struct kernel_symbol {
    uint64_t addr, end;
    size_t name;   /* where it begins in the text */
    size_t module; /* likewise, as "[ext4]"; 0: it is the kernel's own */
};

/* Addresses of the kernel itself, without its modules.  0: the symbol is not in the list. */
struct kernel_core {
    uint64_t text, stext; /* of the symbols _text, _stext */
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

/* The same of the text that SYMBOLS' file holds; all else of it is zeros. */
int kernel_symbols_parse(struct kernel_symbols *symbols);

/* The last function that begins at or before ADDR; NULL: none. */
const struct kernel_symbol *kernel_symbols_before(const struct kernel_symbols *symbols,
                                                  uint64_t addr);

/* The function at ADDR; NULL: none. */
const struct kernel_symbol *kernel_symbols_at(const struct kernel_symbols *symbols, uint64_t addr);

/* The first function of the module of SYMBOL. */
const struct kernel_symbol *kernel_symbols_first(const struct kernel_symbols *symbols,
                                                 const struct kernel_symbol *symbol);

void kernel_symbols_free(struct kernel_symbols *symbols);

#endif
