/* See symbol_index.h. */
#include "injector/native/symbols/symbol_index.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/arrays/digit_sort.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_code(const GElf_Sym *symbol, const char *name)
{
    unsigned type = GELF_ST_TYPE(symbol->st_info);
    return name && *name && symbol->st_shndx != SHN_UNDEF &&
           (type == STT_FUNC || type == STT_GNU_IFUNC ||
            (type == STT_NOTYPE && symbol->st_shndx != SHN_ABS && name[0] != '$'));
}

static size_t underscores(const char *name)
{
    return strspn(name, "_");
}

/* The rank by which perf 6.1 chooses one of two symbols at one address.  It prefers a symbol with a
 * size, then one that is not weak, then one that is global, then one with fewer underscores in
 * front, then the longer name. */
static int rank(const struct code_symbol *a, const struct code_symbol *b)
{
    bool sized_a = a->end > a->addr, sized_b = b->end > b->addr;
    bool weak_a = GELF_ST_BIND(a->info) == STB_WEAK, weak_b = GELF_ST_BIND(b->info) == STB_WEAK;
    bool global_a = GELF_ST_BIND(a->info) == STB_GLOBAL,
         global_b = GELF_ST_BIND(b->info) == STB_GLOBAL;
    if (sized_a != sized_b)
        return sized_a ? -1 : 1;
    if (weak_a != weak_b)
        return weak_a ? 1 : -1;
    if (global_a != global_b)
        return global_a ? -1 : 1;
    if (underscores(a->name) != underscores(b->name))
        return underscores(a->name) < underscores(b->name) ? -1 : 1;
    size_t length_a = strlen(a->name), length_b = strlen(b->name);
    return length_a != length_b ? (length_a > length_b ? -1 : 1) : strcmp(a->name, b->name);
}

/* The one of those at the address of number FIRST that perf shows; *BEHIND is behind the last. */
static struct code_symbol best_of(const struct symbol_index *index, size_t first, size_t *behind)
{
    const struct code_symbol *items = index->items, *best = &items[first];
    size_t i = first + 1;
    for (; i < index->count && items[i].addr == best->addr; i++)
        if (rank(&items[i], best) < 0)
            best = &items[i];
    *behind = i;
    return *best;
}

/* One for each address.  A symbol without a size reaches up to the next one.  Inside of a function
 * it is only a label, as perfjit's images have for each body. */
static void keep_one_each(struct symbol_index *index)
{
    uint64_t covered = 0;
    size_t kept = 0;
    for (size_t i = 0, next; i < index->count; i = next) {
        struct code_symbol symbol = best_of(index, i, &next);
        if (symbol.end == symbol.addr && symbol.addr < covered)
            continue;
        covered = symbol.end > covered ? symbol.end : covered;
        index->items[kept++] = symbol;
    }
    index->count = kept;
    for (size_t i = 0; i < kept; i++)
        if (index->items[i].end == index->items[i].addr)
            index->items[i].end = i + 1 < kept ? index->items[i + 1].addr : UINT64_MAX;
}

/* Bit 0 of the address of a function for Arm says that it is Thumb code. */
static uint64_t addr_of(const struct elf_view *view, const GElf_Sym *symbol)
{
    bool is_thumb = view->elf_mach == EM_ARM && GELF_ST_TYPE(symbol->st_info) == STT_FUNC;
    return is_thumb ? symbol->st_value & ~UINT64_C(1) : symbol->st_value;
}

/* Returns 1, 0 if VIEW has no table of that TYPE, or -1 without memory. */
static int add_symbols(struct symbol_index *index, struct elf_view *view, uint32_t type)
{
    size_t names;
    GElf_Sym symbol;
    Elf_Data *data = elf_view_symbols(view, type, &names);
    if (!data)
        return 0;
    for (int i = 1; gelf_getsym(data, i, &symbol); i++) {
        const char *name = elf_strptr(view->elf, names, symbol.st_name);
        if (!is_code(&symbol, name))
            continue;
        if (array_reserve(index->items, index->count, index->capacity))
            return -1;
        uint64_t addr = addr_of(view, &symbol);
        index->items[index->count++] =
            (struct code_symbol){addr, addr + symbol.st_size, name, symbol.st_info};
    }
    return 1;
}

static int add_plt(struct symbol_index *index, struct elf_view *view)
{
    const struct plt_symbols *plt = &index->plt;
    if (plt_symbols_find(&index->plt, view))
        return -1;
    for (size_t i = 0; i < plt->count; i++) {
        if (array_reserve(index->items, index->count, index->capacity))
            return -1;
        index->items[index->count++] = (struct code_symbol){plt->items[i].addr, plt->items[i].end,
                                                            plt->names + plt->items[i].name,
                                                            GELF_ST_INFO(STB_LOCAL, STT_FUNC)};
    }
    return 0;
}

int symbol_index_read(struct symbol_index *index, struct elf_view *view, struct elf_view *debug)
{
    *index = (struct symbol_index){0};
    int found = add_symbols(index, view, SHT_SYMTAB);
    if (!found)
        found = add_symbols(index, debug, SHT_SYMTAB);
    /* .gnu_debugdata has what .dynsym lacks. */
    if (found >= 0 && (!found || index->count == 0 || debug->unpacked))
        found = add_symbols(index, view, SHT_DYNSYM);
    if (found < 0 || add_plt(index, view) ||
        digit_sort(index->items, index->count, sizeof *index->items))
        return -1;
    keep_one_each(index);
    return 0;
}

const struct code_symbol *symbol_index_at(const struct symbol_index *index, uint64_t addr)
{
    size_t behind;
    array_bisect(behind, index->count, index->items[behind].addr <= addr);
    const struct code_symbol *symbol = behind ? &index->items[behind - 1] : NULL;
    return symbol && addr < symbol->end ? symbol : NULL;
}

void symbol_index_free(struct symbol_index *index)
{
    free(index->items);
    plt_symbols_free(&index->plt);
    *index = (struct symbol_index){0};
}
