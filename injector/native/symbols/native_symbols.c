/* See native_symbols.h. */
#include "injector/native/symbols/native_symbols.h"

#include "injector/arrays/array.h"
#include "injector/files/regular_file.h"
#include "injector/native/debug_file.h"
#include "injector/native/symbols/demangle.h"
#include "injector/native/symbols/scope_index.h"
#include "injector/native/symbols/symbol_index.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct symbol_module {
    const char *path;
    int fd; /* of the file, until libdwfl has it; -1: there is none */
    Dwfl *dwfl;
    Dwfl_Module *module; /* or NULL */
    Dwarf_Addr bias;
    struct symbol_index index;
    struct scope_index scopes;
};

/* ---- The file ---- */

static int no_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **path,
                  Elf **elf)
{
    (void)module, (void)data, (void)name, (void)base, (void)path, (void)elf;
    return -1;
}

/* As dwfl_standard_find_debuginfo, but without the network.  That function asks the network for
 * missing files, or at least loads the fifteen libraries that it needs for that.  A debug file's
 * own debug file (dwz) has no CRC. */
static int find_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                          const char *path, const char *link, GElf_Word crc, char **found)
{
    int fd = dwfl_build_id_find_debuginfo(module, data, name, base, path, link, crc, found);
    if (fd >= 0 || !path || !link)
        return fd;
    return crc ? debug_file_linked(path, link, crc, found)
               : dwfl_standard_find_debuginfo(module, data, name, base, path, link, crc, found);
}

static const Dwfl_Callbacks callbacks = {
    .find_elf = no_elf,
    .find_debuginfo = find_debuginfo,
    .section_address = dwfl_offline_section_address,
};

/* A descriptor of the bytes that the walk has read already.  The file's path may have changed. */
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

/* Whether the file of FD is the one that the walk has read. */
static bool is_same(int fd, const struct stat *status, const struct elf_view *view)
{
    if ((uint64_t)status->st_size != view->size)
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
    struct stat status;
    int fd = -1;
    if (name[0] == '/' && !files->root)
        fd = regular_file_open(name, 0, &status);
    if (fd >= 0 && is_same(fd, &status, &file->view))
        return fd;
    if (fd >= 0)
        close(fd);
    return copy_of(&file->view);
}

/* Mark the sections that are not needed here as absent, in libelf's own copy of the section
 * headers.  Otherwise libdw unpacks all sections that it knows at the first request.  The section
 * with the places of variables is a sixth of libc's debug file. */
static void leave_out_locations(Elf *elf)
{
    size_t names;
    GElf_Shdr header;
    if (elf_getshdrstrndx(elf, &names))
        return;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        const char *name =
            gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (!name || !(header.sh_flags & SHF_COMPRESSED) ||
            (strcmp(name, ".debug_loclists") != 0 && strcmp(name, ".debug_loc") != 0))
            continue;
        header.sh_type = SHT_NOBITS;
        gelf_update_shdr(section, &header);
    }
}

/* The file that the symbols are from, which is the one with debug information if there is one. */
static Elf *symbols_file(Dwfl_Module *module)
{
    GElf_Sym symbol;
    GElf_Addr addr;
    Elf *elf = NULL;
    if (dwfl_module_getsymtab(module) > 0)
        dwfl_module_getsym_info(module, 0, &symbol, &addr, NULL, &elf, NULL);
    return elf;
}

/* At its own addresses: an executable has a bias of 0. */
static void report(struct symbol_module *module)
{
    dwfl_report_begin(module->dwfl);
    module->module = dwfl_report_elf(module->dwfl, "file", module->path, module->fd, 0, true);
    if (!module->module)
        close(module->fd);
    dwfl_report_end(module->dwfl, NULL, NULL);
    if (!module->module)
        return;
    dwfl_module_getelf(module->module, &module->bias);
    symbol_index_read(&module->index, module->module);
    Elf *elf = symbols_file(module->module);
    if (elf)
        leave_out_locations(elf);
    scope_index_read(&module->scopes, module->module);
}

static void *read_module(void *context)
{
    struct symbol_module *module = context;
    if (module->fd >= 0 && module->dwfl)
        report(module);
    else if (module->fd >= 0)
        close(module->fd);
    return NULL;
}

static struct symbol_module *open_module(const struct native_files *files,
                                         const struct native_file *file)
{
    struct symbol_module *module = calloc(1, sizeof *module);
    if (!module)
        return NULL;
    unsetenv("DEBUGINFOD_URLS");
    module->dwfl = dwfl_begin(&callbacks);
    module->path = file->map->map.filename;
    module->fd = file->view.elf ? open_view(files, file) : -1;
    return module;
}

static struct symbol_module **place_of(struct native_symbols *symbols,
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
    return &symbols->modules[file->number - 1];
}

static struct symbol_module *module_of(struct native_symbols *symbols,
                                       const struct native_file *file)
{
    struct symbol_module **place = place_of(symbols, file);
    if (!place)
        return NULL;
    if (!*place && (*place = open_module(symbols->files, file)))
        read_module(*place);
    return *place;
}

/* ---- Places ---- */

static void find_line(const struct scope_index *index, Dwarf_Die *unit, Dwarf_Addr addr,
                      const char **file, int *number)
{
    Dwarf_Line *line = dwarf_getsrc_die(unit, addr - index->bias);
    if (line && dwarf_lineno(line, number) == 0)
        *file = dwarf_linesrc(line, NULL, NULL);
}

/* The file that ATTRIBUTE, or NULL, has the number of.  From DWARF 5 on 0 is one, which clang uses
 * and libdw's own dwarf_decl_file takes for none. */
static const char *file_of(Dwarf_Attribute *attribute)
{
    Dwarf_Word number;
    Dwarf_Files *files;
    Dwarf_Die unit;
    Dwarf_Half version;
    size_t count;
    if (dwarf_formudata(attribute, &number) ||
        !dwarf_cu_die(attribute->cu, &unit, &version, NULL, NULL, NULL, NULL, NULL) ||
        (number == 0 && version < 5) || dwarf_getsrcfiles(&unit, &files, &count) || number >= count)
        return NULL;
    return dwarf_filesrc(files, number, NULL, NULL);
}

static int line_of(Dwarf_Attribute *attribute)
{
    Dwarf_Word number;
    return dwarf_formudata(attribute, &number) == 0 && number <= INT_MAX ? (int)number : 0;
}

/* Find the place from which INLINED was called. */
static void find_call(Dwarf_Die *inlined, struct native_place *place)
{
    Dwarf_Attribute attribute;
    place->line = line_of(dwarf_attr(inlined, DW_AT_call_line, &attribute));
    place->file = file_of(dwarf_attr(inlined, DW_AT_call_file, &attribute));
}

/* The name as symbols have it, or NULL. */
static const char *symbol_of(Dwarf_Die *function)
{
    Dwarf_Attribute attribute;
    const char *name =
        dwarf_formstring(dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute));
    return name ? name
                : dwarf_formstring(
                      dwarf_attr_integrate(function, DW_AT_MIPS_linkage_name, &attribute));
}

/* The entry that says what FUNCTION, a call or code of it, is declared as: it stands in its
 * namespace. */
static Dwarf_Die declared(const Dwarf_Die *function)
{
    enum { MOST_STEPS = 4 };
    static const unsigned links[] = {DW_AT_abstract_origin, DW_AT_specification};
    Dwarf_Die die = *function, next;
    Dwarf_Attribute attribute;
    for (unsigned i = 0, step = 0; i < 2 && step < MOST_STEPS; step++)
        if (dwarf_formref_die(dwarf_attr(&die, links[i], &attribute), &next))
            die = next;
        else
            i++;
    return die;
}

char *native_name_shown(const char *name)
{
    char *plain = demangle(name, DEMANGLED_MOST_BYTES);
    return plain ? plain : strndup(name, strcspn(name, "@"));
}

/* Put the name of SPACE; a function's symbol has those that it is in itself. */
static void put_space(FILE *stream, Dwarf_Die *space)
{
    const char *symbol = dwarf_tag(space) == DW_TAG_subprogram ? symbol_of(space) : NULL;
    char *shown = symbol ? native_name_shown(symbol) : NULL;
    const char *name = shown ? shown : dwarf_diename(space);
    if (!name)
        name = dwarf_tag(space) == DW_TAG_namespace ? "(anonymous namespace)" : "{unnamed}";
    fprintf(stream, "%s::", name);
    free(shown);
}

/* Put the name of FUNCTION behind those of its namespaces, types and functions. */
static void put_qualified(FILE *stream, struct scope_index *index, Dwarf_Die *function,
                          const char *name)
{
    enum { MOST_SPACES = 32 };
    Dwarf_Die spaces[MOST_SPACES], die = declared(function);
    size_t count = scope_index_spaces(index, &die, spaces, MOST_SPACES), outer = 0;
    while (outer < count &&
           (dwarf_tag(&spaces[outer]) != DW_TAG_subprogram || !symbol_of(&spaces[outer])))
        outer++;
    for (size_t i = outer < count ? outer + 1 : count; i--;)
        put_space(stream, &spaces[i]);
    fputs(name, stream);
}

/* A name with its namespaces, as most languages write them; NULL: there is none, or no memory. */
static const char *qualified_name(struct native_symbols *symbols, struct scope_index *index,
                                  Dwarf_Die *function)
{
    const char *name = dwarf_diename(function);
    char *text = NULL;
    size_t bytes;
    if (!name || array_reserve(symbols->names, symbols->name_count, symbols->name_capacity))
        return name;
    FILE *stream = open_memstream(&text, &bytes);
    if (!stream)
        return name;
    put_qualified(stream, index, function, name);
    if (fclose(stream)) {
        free(text);
        return name;
    }
    return symbols->names[symbols->name_count++] = text;
}

static const char *name_of(struct native_symbols *symbols, struct scope_index *index,
                           Dwarf_Die *function)
{
    const char *symbol = symbol_of(function);
    return symbol ? symbol : qualified_name(symbols, index, function);
}

static void find_declaration(Dwarf_Die *function, struct native_place *place)
{
    Dwarf_Attribute attribute;
    place->decl_line = line_of(dwarf_attr_integrate(function, DW_AT_decl_line, &attribute));
    place->decl_file = file_of(dwarf_attr_integrate(function, DW_AT_decl_file, &attribute));
}

/* From the innermost scope outwards: each inlined call gets a place, whose caller's line is where
 * it was called. */
static size_t add_inlined(struct native_symbols *symbols, struct scope_index *index,
                          Dwarf_Die *scopes, size_t scope_count, struct native_place *places)
{
    size_t count = 1;
    for (size_t i = 0; i + 1 < scope_count; i++) {
        places[count] = places[count - 1];
        places[count - 1].name = name_of(symbols, index, &scopes[i]);
        places[count - 1].offset = 0;
        places[count - 1].inlined = true;
        find_declaration(&scopes[i], &places[count - 1]);
        find_call(&scopes[i], &places[count++]);
    }
    return count;
}

/* Put the debug information's entries for ADDR into PLACES, of which the first has the symbol's
 * name.
 */
static size_t find_places(struct native_symbols *symbols, struct symbol_module *module,
                          Dwarf_Addr addr, struct native_place *places)
{
    Dwarf_Die scopes[NATIVE_PLACES];
    struct scope_index *index = &module->scopes;
    struct scope_unit *unit = scope_index_unit(index, addr);
    if (!unit)
        return 1;
    const Dwarf_Addr start = addr - places[0].offset;
    find_line(index, &unit->die, addr, &places[0].file, &places[0].line);
    size_t scope_count = scope_index_at(index, unit, addr, scopes, NATIVE_PLACES);
    size_t count = scope_count ? add_inlined(symbols, index, scopes, scope_count, places) : 1;
    struct native_place *function = &places[count - 1];
    if (scope_count)
        find_declaration(&scopes[scope_count - 1], function);
    if (scope_count && !function->name)
        function->name = name_of(symbols, index, &scopes[scope_count - 1]);
    if (!function->decl_file && function->name) /* as compilers at run time leave it out */
        find_line(index, &unit->die, start, &function->decl_file, &function->decl_line);
    for (size_t i = 0; i < count; i++) /* as gcc leaves it out of lambdas */
        if (!places[i].decl_file)
            places[i].decl_file = places[i].file;
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
    return find_places(symbols, module, addr, places);
}

void native_symbols_free(struct native_symbols *symbols)
{
    for (size_t i = 0; i < symbols->count; i++)
        if (symbols->modules[i]) {
            symbol_index_free(&symbols->modules[i]->index);
            scope_index_free(&symbols->modules[i]->scopes);
            dwfl_end(symbols->modules[i]->dwfl);
            free(symbols->modules[i]);
        }
    for (size_t i = 0; i < symbols->name_count; i++)
        free(symbols->names[i]);
    free(symbols->names);
    free(symbols->modules);
    *symbols = (struct native_symbols){0};
}
