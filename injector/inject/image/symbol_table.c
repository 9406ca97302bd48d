/* See symbol_table.h. */
#include "injector/inject/image/symbol_table.h"

#include "injector/arrays/array.h"
#include "injector/inject/layout/image_plan.h"
#include "injector/log/code/tier_mark.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What the symbol in front of a body says ---- */

/* The symbol in front of a body, for the case that several bodies share one symbol: perf annotate
 * shows it.
 *
 *     body 2 of 3, tier2, loaded at 12345.678901
 *
 * The time is on the recording's clock, as perf script prints it. */

enum { NS_PER_S = 1000000000, NS_PER_US = 1000 };

/* Put the label of body NUMBER, from 0 on, of ROW into TEXT, without a NUL.  Returns its length.
 */
static size_t body_label(char text[BODY_LABEL_BYTES], const struct jit_image *image,
                         const struct image_row *row, uint32_t number)
{
    size_t at = row->first + (size_t)number;
    const struct jit_function *function = image->bodies[at].function;
    uint64_t time_ns = image->bodies[at].loaded_ns;
    char tier[TIER_TEXT_BYTES];
    tier_mark_text(function->name, tier_mark_of(function->name, function->name_bytes), tier);
    int bytes = snprintf(text, BODY_LABEL_BYTES,
                         "body %" PRIu32 " of %" PRIu32 "%s%s, loaded at %" PRIu64 ".%06" PRIu64,
                         number + 1, row->count, *tier ? ", " : "", tier, time_ns / NS_PER_S,
                         time_ns % NS_PER_S / NS_PER_US);
    return (size_t)bytes;
}

int symbol_table_make(struct symbol_table *table, const struct jit_image *image, int class)
{
    size_t names = (size_t)image->names_bytes + 1;
    table->symbol_bytes = class == ELFCLASS64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
    table->symbols_bytes = (image_row_count(image) + image->label_count + 1) * table->symbol_bytes;
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
                                                        .st_other = symbol.st_other,
                                                        .st_shndx = symbol.st_shndx,
                                                        .st_value = (Elf32_Addr)symbol.st_value,
                                                        .st_size = (Elf32_Word)symbol.st_size};
}

/* Begin a name.  Returns where it stands. */
static size_t begin_name(const struct symbol_table *table)
{
    return table->strings_bytes;
}

static void put_name(struct symbol_table *table, const char *text, size_t bytes)
{
    memcpy(table->strings + table->strings_bytes, text, bytes);
    table->strings_bytes += bytes;
}

static void end_name(struct symbol_table *table)
{
    table->strings[table->strings_bytes++] = '\0';
}

/* The name of FUNCTION without the parts that ROW cuts out.  Returns where it stands. */
static size_t add_name(struct symbol_table *table, const struct jit_function *function,
                       const struct image_row *row)
{
    size_t at = begin_name(table), rest = row->cut_at + (size_t)row->cut_bytes;
    put_name(table, function->name, row->cut_at);
    put_name(table, function->name + rest, function->name_bytes - rest);
    end_name(table);
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

/* The next higher one than number N; 0 after the last. */
static size_t next_behind(size_t n, size_t count)
{
    if (2 * n + 1 <= count)
        return lowest_under(2 * n + 1, count);
    while (n % 2 == 1)
        n /= 2;
    return n / 2;
}

static void add_row(struct symbol_table *table, size_t at, const struct jit_image *image,
                    const struct image_row *row, unsigned section)
{
    size_t last = row->first + (size_t)row->count - 1;
    uint64_t lead = image_row_is_labelled(row) ? ROW_LEAD_BYTES : 0;
    uint64_t start = image->bodies[row->first].offset - lead;
    uint64_t end = image->bodies[last].offset + image->bodies[last].function->size;
    size_t name = add_name(table, image->bodies[row->first].function, row);
    set_symbol(table, at,
               (Elf64_Sym){.st_name = (Elf64_Word)name,
                           .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
                           .st_shndx = (Elf64_Section)section,
                           .st_value = start,
                           .st_size = end - start});
}

/* ---- Labels ---- */

static size_t add_labels(struct symbol_table *table, size_t at, const struct jit_image *image,
                         const struct image_row *row, unsigned section)
{
    char text[BODY_LABEL_BYTES];
    for (uint32_t i = 0; i < row->count; i++) {
        size_t name = begin_name(table);
        put_name(table, text, body_label(text, image, row, i));
        end_name(table);
        set_symbol(table, at++,
                   (Elf64_Sym){.st_name = (Elf64_Word)name,
                               .st_info = ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE),
                               .st_other = STV_HIDDEN,
                               .st_shndx = (Elf64_Section)section,
                               .st_value = image->bodies[row->first + i].offset});
    }
    return at;
}

void symbol_table_fill(struct symbol_table *table, const struct jit_image *image, unsigned section)
{
    enum { AHEAD = 16 };
    size_t count = image_row_count(image), at = lowest_under(1, count);
    for (size_t i = 0; i < count; i++, at = next_behind(at, count)) {
        struct image_row row = image_row_at(image, i);
        if (i + AHEAD < count)
            fetch_name(image->bodies[image_row_at(image, i + AHEAD).first].function);
        add_row(table, at, image, &row, section);
    }
    at = count + 1;
    for (size_t i = 0; image->label_count && i < count; i++)
        if (image_row_is_labelled(&image->rows[i]))
            at = add_labels(table, at, image, &image->rows[i], section);
}
