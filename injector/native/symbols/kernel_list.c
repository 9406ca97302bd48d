/* See kernel_list.h. */
#include "injector/native/symbols/kernel_list.h"

#include "injector/files/memory_file.h"
#include "injector/native/mapped_build_id.h"
#include "injector/native/native_file.h"
#include "injector/recording/host/recording_host.h"
#include "injector/text/file_name.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KERNEL_NAME "[kernel.kallsyms]"

enum { KERNEL_PID = -1, PAGE_BYTES = 4096 };

/* ---- Which lists there are ---- */

static struct kernel_place place_in(const struct records *records)
{
    size_t count;
    const struct recorded_map *maps = records_maps_of(records, (uint32_t)KERNEL_PID, &count);
    for (size_t i = 0; i < count; i++) {
        const struct perf_map *map = &maps[i].map;
        if (strcmp(map->filename, KERNEL_NAME "_text") == 0)
            return (struct kernel_place){map->start, map->len, map->pgoff, false};
        if (strcmp(map->filename, KERNEL_NAME "_stext") == 0)
            return (struct kernel_place){map->start, map->len, map->pgoff, true};
    }
    return (struct kernel_place){0};
}

static void read_running_build_id(const char *path, struct build_id *id)
{
    struct memory_file notes = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (!memory_file_read(&notes, fd))
        build_id_in_notes(id, notes.data, notes.size);
    close(fd);
    memory_file_free(&notes);
}

/* The path at which perf record keeps the list of the kernel with ID; NULL without memory. */
static char *kept_path(const char *home, const struct build_id *id)
{
    char hex[BUILD_ID_HEX_BYTES], *path;
    build_id_hex(hex, id);
    return asprintf(&path, "%s/.debug/" KERNEL_NAME "/%s/kallsyms", home, hex) < 0 ? NULL : path;
}

int kernel_list_begin(struct kernel_list *list, const struct records *records,
                      struct kernel_paths paths)
{
    struct build_id recorded = {.size = 0}, here = {.size = 0};
    struct recording_host host;
    *list = (struct kernel_list){.records = records, .place = place_in(records)};
    native_build_id_of(records->file, KERNEL_NAME, &recorded);
    read_running_build_id(paths.notes, &here);
    recording_host_read(&host, records->file);
    bool is_host = recording_host_is_here(&host);
    bool both = recorded.size && here.size;
    if (both ? build_id_is(&recorded, &here) : is_host)
        list->candidates[1] =
            (struct kernel_candidate){.path = paths.symbols, .core_alone = !is_host};
    if (!recorded.size || !list->place.symbol_addr || !paths.home)
        return 0;
    list->kept_path = kept_path(paths.home, &recorded);
    if (list->kept_path && access(list->kept_path, R_OK) == 0)
        list->candidates[0] =
            (struct kernel_candidate){.path = list->kept_path, .core_alone = true};
    return list->kept_path ? 0 : -1;
}

/* ---- Names ---- */

/* Whether FILENAME, of a map of the kernel, is that of MODULE, "[snd_pcm]":
 * "/lib/modules/6.1/kernel/sound/snd-pcm.ko.xz", or the same in brackets. */
static bool is_module_of(const char *module, const char *filename)
{
    const char *name = file_name_of(filename);
    name += *name == '[';
    for (module++; *module && *module != ']'; module++, name++)
        if (*module != (*name == '-' ? '_' : *name))
            return false;
    return *name == ']' || strncmp(name, ".ko", 3) == 0;
}

/* The map in the recording of the module of SYMBOL, at PC; NULL: there is none. */
static const struct perf_map *map_of(const struct kernel_list *list,
                                     const struct kernel_symbols *symbols,
                                     const struct kernel_symbol *symbol, uint64_t pc)
{
    size_t count;
    const struct recorded_map *maps = records_maps_of(list->records, (uint32_t)KERNEL_PID, &count);
    for (size_t i = 0; i < count; i++)
        if (pc - maps[i].map.start < maps[i].map.len &&
            is_module_of(symbols->text + symbol->module, maps[i].map.filename))
            return &maps[i].map;
    return NULL;
}

/* Code that is made while the kernel runs: "[bpf]", "[__builtin__ftrace]". */
static bool is_made(const char *module)
{
    return strcmp(module, "[bpf]") == 0 || strncmp(module, "[__builtin__", 12) == 0;
}

/* The name that SYMBOL, of a module, gave to PC when the recording was made.  IS_NOW: what the list
 * says was so then.  A module's last function reaches to the end of its map. */
static const char *name_in_module(const struct kernel_list *list,
                                  const struct kernel_symbols *symbols,
                                  const struct kernel_symbol *symbol, bool is_now, uint64_t pc)
{
    const char *name = symbols->text + symbol->name;
    if (is_made(symbols->text + symbol->module))
        return is_now && pc < symbol->end && !list->records->kernel_code.count ? name : NULL;
    if (is_now && pc < symbol->end)
        return name;
    const struct perf_map *map = map_of(list, symbols, symbol, pc);
    uint64_t first = kernel_symbols_first(symbols, symbol)->addr;
    return map && first >= map->start && first - map->start < PAGE_BYTES ? name : NULL;
}

/* The name of the code that was at PC when the recording was made, by the list of CANDIDATE. */
static const char *name_of(const struct kernel_list *list, const struct kernel_candidate *candidate,
                           uint64_t pc)
{
    const struct kernel_symbols *symbols = &candidate->symbols;
    const struct kernel_core *core = &symbols->core;
    uint64_t now = list->place.is_stext ? core->stext : core->text;
    uint64_t moved = list->place.symbol_addr && now ? list->place.symbol_addr - now : 0;
    const struct kernel_symbol *symbol = kernel_symbols_at(symbols, pc - moved);
    if (candidate->core_alone && !now)
        return NULL;
    if (symbol && !symbol->module)
        return symbols->text + symbol->name;
    symbol = kernel_symbols_before(symbols, pc);
    return symbol && symbol->module
               ? name_in_module(list, symbols, symbol, !candidate->core_alone && !moved, pc)
               : NULL;
}

/* The kernel takes 40 ms to write its own list: it is read only if it is needed.  Returns -1
 * without memory. */
static int read_once(struct kernel_candidate *candidate)
{
    if (candidate->has_been_read)
        return 0;
    candidate->has_been_read = true;
    return kernel_symbols_read(&candidate->symbols, candidate->path);
}

int kernel_list_at(struct kernel_list *list, uint64_t pc, size_t code, const char **name)
{
    *name = code == NO_KERNEL_CODE ? NULL : list->records->kernel_code.items[code].name;
    for (size_t i = 0; i < 2 && !*name; i++) {
        struct kernel_candidate *candidate = &list->candidates[i];
        if (!candidate->path)
            continue;
        if (read_once(candidate))
            return -1;
        *name = name_of(list, candidate, pc);
    }
    return 0;
}

void kernel_list_end(struct kernel_list *list)
{
    for (size_t i = 0; i < 2; i++)
        kernel_symbols_free(&list->candidates[i].symbols);
    free(list->kept_path);
    *list = (struct kernel_list){0};
}
