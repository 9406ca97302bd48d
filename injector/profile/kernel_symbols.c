/* See kernel_symbols.h. */
#include "injector/profile/kernel_symbols.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/arrays/run_sort.h"
#include "injector/files/memory_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One LINE of the text, which is NUL-terminated. */
static int take_line(struct kernel_symbols *symbols, char *line)
{
    char *end;
    uint64_t addr = strtoull(line, &end, 16);
    if (end == line || addr == 0 || end[0] != ' ' || !end[1] || end[2] != ' ' ||
        !strchr("tTwW", end[1]))
        return 0;
    char *name = end + 3;
    name[strcspn(name, "\t \n")] = '\0';
    if (array_reserve(symbols->items, symbols->count, symbols->capacity))
        return -1;
    symbols->items[symbols->count++] = (struct kernel_symbol){addr, (size_t)(name - symbols->text)};
    return 0;
}

static int take_lines(struct kernel_symbols *symbols)
{
    char *rest = NULL;
    for (char *line = strtok_r(symbols->text, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest))
        if (take_line(symbols, line))
            return -1;
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
    struct memory_file file = {0};
    *symbols = (struct kernel_symbols){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    int result = memory_file_read(&file, fd) || memory_file_add(&file, "", 1);
    close(fd);
    if (!result) {
        symbols->text = malloc(file.size);
        symbols->bytes = file.size;
        result = !symbols->text;
    }
    if (!result)
        memcpy(symbols->text, file.data, file.size);
    memory_file_free(&file);
    return result || take_lines(symbols) || sort(symbols) ? -1 : 0;
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
    free(symbols->text);
    *symbols = (struct kernel_symbols){0};
}
