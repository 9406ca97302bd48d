/* See kernel_symbols.h. */
#include "injector/native/symbols/kernel_symbols.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/arrays/run_sort.h"
#include "injector/files/regular_file.h"
#include "injector/text/hex_digit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LIST_MOST_BYTES = 1 << 28, /* 50 times as many as kernels write */
    PAGE_BYTES = 4096
};

/* The address that TEXT begins with, and where it ends. */
static uint64_t address_in(const char *text, const char **end)
{
    uint64_t addr = 0;
    for (int digit; (digit = hex_digit(*text)) >= 0; text++)
        addr = addr << 4 | (unsigned)digit;
    *end = text;
    return addr;
}

static void take_core(struct kernel_core *core, const char *name, uint64_t addr)
{
    if (name[0] != '_')
        return;
    if (strcmp(name, "_text") == 0)
        core->text = addr;
    else if (strcmp(name, "_stext") == 0)
        core->stext = addr;
}

/* End the word at TEXT; returns where the next one begins, or where the line ends. */
static char *cut_word(char *text)
{
    char *end = text + strcspn(text, "\t ");
    if (!*end)
        return end;
    *end++ = '\0';
    return end + strspn(end, "\t ");
}

/* One LINE of the text, of which NUL is the end. */
static int take_line(struct kernel_symbols *symbols, char *line)
{
    const char *end;
    uint64_t addr = address_in(line, &end);
    if (end == line || addr == 0 || addr == UINT64_MAX || end[0] != ' ' || !end[1] || end[2] != ' ')
        return 0;
    char *name = line + (end - line) + 3, *module = cut_word(name);
    cut_word(module);
    take_core(&symbols->core, name, addr);
    if (!*name || strchr("aA", end[1]))
        return 0;
    if (array_reserve(symbols->items, symbols->count, symbols->capacity))
        return -1;
    symbols->items[symbols->count++] =
        (struct kernel_symbol){.addr = addr,
                               .end = strchr("tTwW", end[1]) != NULL,
                               .name = (size_t)(name - symbols->text),
                               .module = *module ? (size_t)(module - symbols->text) : 0};
    return 0;
}

/* The text ends with a NUL. */
static int take_lines(struct kernel_symbols *symbols)
{
    char *end = symbols->text + symbols->file.size - 1;
    for (char *line = symbols->text, *next; line < end; line = next + 1) {
        next = memchr(line, '\n', (size_t)(end - line));
        next = next ? next : end;
        *next = '\0';
        if (take_line(symbols, line))
            return -1;
    }
    return 0;
}

static int sort(struct kernel_symbols *symbols)
{
    struct kernel_symbol *room = malloc((symbols->count + 1) * sizeof *room);
    if (!room)
        return -1;
    run_sort(symbols->items, room, symbols->count, sizeof *room);
    free(room);
    return 0;
}

static bool same_module(const struct kernel_symbols *symbols, const struct kernel_symbol *a,
                        const struct kernel_symbol *b)
{
    return a->module == b->module ||
           (a->module && b->module &&
            strcmp(symbols->text + a->module, symbols->text + b->module) == 0);
}

static bool ends_text(const struct kernel_symbols *symbols, const struct kernel_symbol *symbol)
{
    const char *name = symbols->text + symbol->name;
    return name[0] == '_' && (strcmp(name, "_etext") == 0 || strcmp(name, "_einittext") == 0);
}

/* Where SYMBOL ends, if NEXT is the first one behind its address, or NULL. */
static uint64_t end_of(const struct kernel_symbols *symbols, const struct kernel_symbol *symbol,
                       const struct kernel_symbol *next)
{
    uint64_t most = symbol->addr > UINT64_MAX - 2 * PAGE_BYTES
                        ? UINT64_MAX
                        : (symbol->addr + 2 * PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
    if (next && same_module(symbols, symbol, next) && !ends_text(symbols, symbol))
        return next->addr;
    return next && next->addr < most ? next->addr : most;
}

/* Of all symbols, in order, keep the functions, with their ends; so far their `end` says which are
 * that. */
static void find_ends(struct kernel_symbols *symbols)
{
    size_t kept = 0, next = 0;
    for (size_t i = 0; i < symbols->count; i++) {
        struct kernel_symbol symbol = symbols->items[i];
        if (next <= i)
            for (next = i + 1; next < symbols->count && symbols->items[next].addr == symbol.addr;)
                next++;
        if (!symbol.end)
            continue;
        symbol.end = end_of(symbols, &symbol, next < symbols->count ? &symbols->items[next] : NULL);
        symbols->items[kept++] = symbol;
    }
    symbols->count = kept;
}

int kernel_symbols_parse(struct kernel_symbols *symbols)
{
    if (memory_file_add(&symbols->file, "", 1))
        return -1;
    symbols->text = (char *)symbols->file.data;
    if (take_lines(symbols) || sort(symbols))
        return -1;
    find_ends(symbols);
    return 0;
}

int kernel_symbols_read(struct kernel_symbols *symbols, const char *path)
{
    *symbols = (struct kernel_symbols){0};
    struct stat status;
    int fd = regular_file_open(path, 0, &status);
    if (fd < 0)
        return 0;
    errno = 0;
    if (status.st_size <= LIST_MOST_BYTES && memory_file_read(&symbols->file, fd) &&
        errno != ENOMEM)
        symbols->file.size = 0; /* a part of it would give the names of others */
    close(fd);
    return errno == ENOMEM ? -1 : kernel_symbols_parse(symbols);
}

const struct kernel_symbol *kernel_symbols_before(const struct kernel_symbols *symbols,
                                                  uint64_t addr)
{
    size_t behind;
    array_bisect(behind, symbols->count, symbols->items[behind].addr <= addr);
    return behind ? &symbols->items[behind - 1] : NULL;
}

const struct kernel_symbol *kernel_symbols_at(const struct kernel_symbols *symbols, uint64_t addr)
{
    const struct kernel_symbol *found = kernel_symbols_before(symbols, addr);
    return found && addr < found->end ? found : NULL;
}

const struct kernel_symbol *kernel_symbols_first(const struct kernel_symbols *symbols,
                                                 const struct kernel_symbol *symbol)
{
    while (symbol > symbols->items && same_module(symbols, symbol - 1, symbol))
        symbol--;
    return symbol;
}

void kernel_symbols_free(struct kernel_symbols *symbols)
{
    free(symbols->items);
    memory_file_free(&symbols->file);
    *symbols = (struct kernel_symbols){0};
}
