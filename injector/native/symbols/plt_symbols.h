/* The stubs through which a file calls functions of others (procedure linkage table, PLT).  No
 * symbol names them: a stub jumps through a word that a relocation fills with the function. */
#ifndef PERFJIT_PLT_SYMBOLS_H
#define PERFJIT_PLT_SYMBOLS_H

#include "injector/native/elf_view.h"

#include <stdbool.h>

struct plt_symbols {
    struct plt_symbol {
        uint64_t addr, end;
        size_t name; /* in `names`: "write@plt" */
    } * items;
    size_t count, capacity;
    char *names;
    size_t names_bytes, names_capacity;
};

/* Find the stubs of VIEW, of x86-64 alone; PLT is zeros at first.  Returns 0, or -1 without memory.
 * Release with plt_symbols_free in either case. */
int plt_symbols_find(struct plt_symbols *plt, struct elf_view *view);

void plt_symbols_free(struct plt_symbols *plt);

#endif
