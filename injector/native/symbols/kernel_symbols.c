/* See kernel_symbols.h. */
#include "injector/native/symbols/kernel_symbols.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/arrays/run_sort.h"
#include "injector/files/regular_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIST_MOST_BYTES = 1 << 28 }; /* 50 times as many as kernels write */

/* The value of C as a hexadecimal digit; 16: it is none. */
static unsigned digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

/* The address that TEXT begins with, and where it ends. */
static uint64_t address_in(const char *text, const char **end)
{
    uint64_t addr = 0;
    for (unsigned digit; (digit = digit_of(*text)) < 16; text++)
        addr = addr << 4 | digit;
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
    else if (strcmp(name, "_etext") == 0)
        core->etext = addr;
}

/* One LINE of the text, of which NUL is the end. */
static int take_line(struct kernel_symbols *symbols, char *line)
{
    const char *end;
    uint64_t addr = address_in(line, &end);
    if (end == line || addr == 0 || end[0] != ' ' || !end[1] || end[2] != ' ')
        return 0;
    char *name = line + (end - line) + 3, *behind = name;
    while (*behind && *behind != '\t' && *behind != ' ')
        behind++;
    *behind = '\0';
    take_core(&symbols->core, name, addr);
    if (!strchr("tTwW", end[1]))
        return 0;
    if (array_reserve(symbols->items, symbols->count, symbols->capacity))
        return -1;
    symbols->items[symbols->count++] = (struct kernel_symbol){addr, (size_t)(name - symbols->text)};
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
    if (errno == ENOMEM || memory_file_add(&symbols->file, "", 1))
        return -1;
    symbols->text = (char *)symbols->file.data;
    return take_lines(symbols) || sort(symbols) ? -1 : 0;
}

const char *kernel_symbols_at(const struct kernel_symbols *symbols, uint64_t addr)
{
    size_t behind;
    array_bisect(behind, symbols->count, symbols->items[behind].addr <= addr);
    return behind ? symbols->text + symbols->items[behind - 1].name : NULL;
}

void kernel_symbols_free(struct kernel_symbols *symbols)
{
    free(symbols->items);
    memory_file_free(&symbols->file);
    *symbols = (struct kernel_symbols){0};
}
