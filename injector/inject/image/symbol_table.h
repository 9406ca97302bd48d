/* The symbols of an image, .symtab and .strtab: a local FUNC symbol for each function, with its
 * size.
 *
 * They stand as in a heap, not by address: the middle one first, then the middle ones of each half,
 * and so on.  The reason is that perf puts one after the other into a red-black tree.  By address
 * each would go down all of its right side, twice as far as the tree has to be deep, and turn
 * something there.
 */
#ifndef PERFJIT_SYMBOL_TABLE_H
#define PERFJIT_SYMBOL_TABLE_H

#include "injector/inject/layout/image_plan.h"

#include <stddef.h>

struct symbol_table {
    void *symbols; /* Elf64_Sym or Elf32_Sym in the program's own byte order; the first is empty */
    size_t symbols_bytes;
    size_t symbol_bytes; /* of each */
    char *strings;
    size_t strings_bytes;
};

/* Make room for the symbols of IMAGE in a file of CLASS, ELFCLASS32 or ELFCLASS64.  Returns 0, or
 * -1 without memory or with more than 4 GiB of names.  Release with symbol_table_free in either
 * case. */
int symbol_table_make(struct symbol_table *table, const struct jit_image *image, int class);

/* Fill it.  SECTION is the index of the functions' section. */
void symbol_table_fill(struct symbol_table *table, const struct jit_image *image, unsigned section);

void symbol_table_free(struct symbol_table *table);

#endif
