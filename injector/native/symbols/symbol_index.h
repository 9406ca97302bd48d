/* The symbols of a file's code by address. */
#ifndef PERFJIT_SYMBOL_INDEX_H
#define PERFJIT_SYMBOL_INDEX_H

#include "injector/native/elf_view.h"
#include "injector/native/symbols/plt_symbols.h"

struct code_symbol {
    uint64_t addr;
    uint64_t end;     /* the next symbol's address where it has no size */
    const char *name; /* the file's, or `plt`'s */
    unsigned char info;
};

struct symbol_index {
    struct code_symbol *items; /* by addr; no two are equal */
    size_t count, capacity;
    struct plt_symbols plt;
};

/* All symbols of code in the file VIEW, or in its DEBUG file, if that has more, and VIEW's stubs;
 * both outlive INDEX.
 * If several have one address, INDEX has the one that perf shows.  Returns 0, or -1 without memory.
 * Release with symbol_index_free in either case. */
int symbol_index_read(struct symbol_index *index, struct elf_view *view, struct elf_view *debug);

/* The symbol that ADDR is in; NULL: none. */
const struct code_symbol *symbol_index_at(const struct symbol_index *index, uint64_t addr);

void symbol_index_free(struct symbol_index *index);

#endif
