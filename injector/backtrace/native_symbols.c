/* See native_symbols.h. */
#include "injector/backtrace/native_symbols.h"

#include "injector/backtrace/symbol_index.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct symbol_module {
    Dwfl *dwfl;
    Dwfl_Module *module; /* or NULL */
    Dwarf_Addr bias;
    struct symbol_index index;
};

/* ---- The file ---- */

static int no_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **path,
                  Elf **elf)
{
    (void)module, (void)data, (void)name, (void)base, (void)path, (void)elf;
    return -1;
}

static const Dwfl_Callbacks callbacks = {
    .find_elf = no_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
};

/* What the walk has read already, whatever its path is by now. */
static int copy_of(const struct elf_view *view)
{
    int fd = memfd_create("perfjit-symbols", MFD_CLOEXEC);
    for (size_t at = 0; fd >= 0 && at < view->size;) {
        ssize_t count = write(fd, view->bytes + at, view->size - at);
        if (count <= 0) {
            close(fd);
            return -1;
        }
        at += (size_t)count;
    }
    return fd;
}

/* Whether the file of FD is what the walk has read. */
static bool is_same(int fd, const struct elf_view *view)
{
    struct stat status;
    if (fstat(fd, &status) || (uint64_t)status.st_size != view->size)
        return false;
    void *bytes = mmap(NULL, view->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return false;
    /* Its headers and the build-id are in the first pages. */
    bool same = memcmp(bytes, view->bytes, view->size < 8192 ? view->size : 8192) == 0;
    munmap(bytes, view->size);
    return same;
}

static int open_view(const struct native_files *files, const struct native_file *file)
{
    const char *name = file->map->map.filename;
    int fd = -1;
    if (name[0] == '/' && !files->root)
        fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && is_same(fd, &file->view))
        return fd;
    if (fd >= 0)
        close(fd);
    return copy_of(&file->view);
}

/* At its own addresses: a bias of 0 is what an executable has. */
static void report(struct symbol_module *module, const struct native_files *files,
                   const struct native_file *file)
{
    unsetenv("DEBUGINFOD_URLS");
    module->dwfl = dwfl_begin(&callbacks);
    int fd = module->dwfl && file->view.elf ? open_view(files, file) : -1;
    if (fd < 0)
        return;
    dwfl_report_begin(module->dwfl);
    module->module = dwfl_report_elf(module->dwfl, "file", file->map->map.filename, fd, 0, true);
    if (!module->module)
        close(fd);
    dwfl_report_end(module->dwfl, NULL, NULL);
    if (!module->module)
        return;
    dwfl_module_getelf(module->module, &module->bias);
    symbol_index_read(&module->index, module->module);
}

static struct symbol_module *module_of(struct native_symbols *symbols,
                                       const struct native_file *file)
{
    if (file->number > symbols->count) {
        struct symbol_module **grown =
            realloc(symbols->modules, (file->number + 1) * sizeof(struct symbol_module *));
        if (!grown)
            return NULL;
        for (size_t i = symbols->count; i < file->number; i++)
            grown[i] = NULL;
        symbols->modules = grown;
        symbols->count = file->number;
    }
    struct symbol_module **place = &symbols->modules[file->number - 1];
    if (!*place && (*place = calloc(1, sizeof **place)))
        report(*place, symbols->files, file);
    return *place;
}

/* ---- Places ---- */

static void find_line(Dwfl_Module *module, Dwarf_Addr addr, struct native_place *place)
{
    Dwfl_Line *line = dwfl_module_getsrc(module, addr);
    if (line)
        place->file = dwfl_lineinfo(line, NULL, &place->line, NULL, NULL, NULL);
}

/* Where INLINED was called. */
static void find_call(Dwarf_Die *unit, Dwarf_Die *inlined, struct native_place *place)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    Dwarf_Files *files;
    size_t count;
    place->file = NULL;
    place->line = 0;
    if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &value) == 0)
        place->line = (int)value;
    if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &value) == 0 &&
        dwarf_getsrcfiles(unit, &files, &count) == 0 && value < count)
        place->file = dwarf_filesrc(files, value, NULL, NULL);
}

/* From the innermost scope outwards: each inlined call gets a place, whose caller's line is where
 * it was called. */
static size_t add_inlined(Dwarf_Die *unit, Dwarf_Die *chain, int chain_count,
                          struct native_place *places)
{
    size_t count = 1;
    for (int i = 0; i < chain_count && count < NATIVE_PLACES; i++) {
        if (dwarf_tag(&chain[i]) != DW_TAG_inlined_subroutine)
            continue;
        places[count] = places[count - 1];
        places[count - 1].name = dwarf_diename(&chain[i]);
        places[count - 1].offset = 0;
        places[count - 1].inlined = true;
        find_call(unit, &chain[i], &places[count++]);
    }
    return count;
}

static size_t find_inlined(Dwfl_Module *module, Dwarf_Addr addr, struct native_place *places)
{
    Dwarf_Addr bias;
    Dwarf_Die *scopes = NULL, *chain = NULL;
    Dwarf_Die *unit = dwfl_module_addrdie(module, addr, &bias);
    size_t count = 1;
    if (!unit || dwarf_getscopes(unit, addr - bias, &scopes) <= 0)
        return 1;
    int chain_count = dwarf_getscopes_die(&scopes[0], &chain);
    if (chain_count > 0)
        count = add_inlined(unit, chain, chain_count, places);
    free(scopes);
    free(chain);
    return count;
}

size_t native_symbols_at(struct native_symbols *symbols, const struct native_file *file,
                         uint64_t addr, struct native_place places[NATIVE_PLACES])
{
    struct symbol_module *module = module_of(symbols, file);
    places[0] = (struct native_place){0};
    if (!module)
        return 0;
    if (!module->module)
        return 1;
    addr += module->bias;
    const struct code_symbol *symbol = symbol_index_at(&module->index, addr);
    if (symbol) {
        places[0].name = symbol->name;
        places[0].offset = addr - symbol->addr;
    }
    find_line(module->module, addr, &places[0]);
    return find_inlined(module->module, addr, places);
}

void native_symbols_free(struct native_symbols *symbols)
{
    for (size_t i = 0; i < symbols->count; i++)
        if (symbols->modules[i]) {
            symbol_index_free(&symbols->modules[i]->index);
            dwfl_end(symbols->modules[i]->dwfl);
            free(symbols->modules[i]);
        }
    free(symbols->modules);
    *symbols = (struct native_symbols){0};
}
