/* See symbol_table.h. */
#include "injector/image/symbol_table.h"

#include "injector/arrays/array.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

int symbol_table_make(struct symbol_table *table, const struct jit_image *image, int class)
{
    size_t names = (size_t)image->names_bytes + 1;
    table->symbol_bytes = class == ELFCLASS64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
    table->symbols_bytes = (image->function_count + 1) * table->symbol_bytes;
    table->symbols = malloc(table->symbols_bytes);
    table->strings = malloc(names);
    if (!table->symbols || !table->strings || names > UINT32_MAX)
        return -1;
    array_in_large_pages(table->symbols, table->symbols_bytes);
    array_in_large_pages(table->strings, names);
    memset(table->symbols, 0, table->symbol_bytes);
    table->strings[0] = '\0';
    table->strings_bytes = 1;
    return 0;
}

void symbol_table_free(struct symbol_table *table)
{
    free(table->symbols);
    free(table->strings);
}

static void set_symbol(struct symbol_table *table, size_t at, Elf64_Sym symbol)
{
    if (table->symbol_bytes == sizeof symbol)
        ((Elf64_Sym *)table->symbols)[at] = symbol;
    else
        ((Elf32_Sym *)table->symbols)[at] = (Elf32_Sym){.st_name = symbol.st_name,
                                                        .st_info = symbol.st_info,
                                                        .st_shndx = symbol.st_shndx,
                                                        .st_value = (Elf32_Addr)symbol.st_value,
                                                        .st_size = (Elf32_Word)symbol.st_size};
}

/* Returns where the name stands now. */
static size_t add_name(struct symbol_table *table, const struct jit_function *function)
{
    size_t at = table->strings_bytes;
    memcpy(table->strings + at, function->name, function->name_bytes);
    table->strings[at + function->name_bytes] = '\0';
    table->strings_bytes += function->name_bytes + (size_t)1;
    return at;
}

/* Names stand far apart in the dump: without a hint each is waited for. */
static void fetch_name(const struct jit_function *function)
{
    __builtin_prefetch(function->name);
    __builtin_prefetch(function->name + function->name_bytes);
}

/* ---- The order ---- */

/* The children of number N of a heap of COUNT, if there are so many, are 2 N and 2 N + 1: which is
 * the lowest under N? */
static size_t lowest_under(size_t n, size_t count)
{
    while (2 * n <= count)
        n *= 2;
    return n;
}

/* The next higher one than number N; 0 behind the last. */
static size_t next_behind(size_t n, size_t count)
{
    if (2 * n + 1 <= count)
        return lowest_under(2 * n + 1, count);
    while (n % 2 == 1)
        n /= 2;
    return n / 2;
}

void symbol_table_fill(struct symbol_table *table, const struct jit_image *image, unsigned section)
{
    enum { AHEAD = 16 };
    const struct jit_function *functions = image->log->functions;
    size_t count = image->function_count, at = lowest_under(1, count);
    for (size_t i = 0; i < count; i++, at = next_behind(at, count)) {
        const struct jit_function *function = &functions[image->functions[i]];
        if (i + AHEAD < count)
            fetch_name(&functions[image->functions[i + AHEAD]]);
        set_symbol(table, at,
                   (Elf64_Sym){.st_name = (Elf64_Word)add_name(table, function),
                               .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
                               .st_shndx = (Elf64_Section)section,
                               .st_value = function->addr - image->base,
                               .st_size = function->size});
    }
}
