/* See native_symbols.h. */
#include "injector/native/symbols/native_symbols.h"

#include "injector/arrays/array.h"
#include "injector/native/debug_file.h"
#include "injector/native/symbols/demangle.h"
#include "injector/native/symbols/scope_index.h"
#include "injector/native/symbols/symbol_index.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct symbol_module {
    struct elf_view common; /* what dwz moved out of the file with the debug information */
    Dwarf *dwarf, *common_dwarf;
    struct symbol_index index;
    struct scope_index scopes;
};

/* ---- The file ---- */

/* Whether names, lines and inlined calls need the section.  libdw unpacks all sections that it
 * knows.  The one with the places of variables is a sixth of libc's debug file. */
static bool is_needed(const char *name)
{
    static const char *const needed[] = {"info", "abbrev",      "line",   "line_str", "str",
                                         "addr", "str_offsets", "ranges", "rnglists"};
    const char *kind = strchr(name, '_');
    for (size_t i = 0; kind && i < sizeof needed / sizeof needed[0]; i++)
        if (strcmp(kind + 1, needed[i]) == 0)
            return true;
    return false;
}

/* The debug information in VIEW, or NULL.  libdw itself would open any file that .gnu_debugaltlink
 * names. */
static Dwarf *open_dwarf(struct elf_view *view)
{
    elf_view_hide(view, ".gnu_debugaltlink");
    elf_view_unpack(view, is_needed);
    return view->elf ? dwarf_begin_elf(view->elf, DWARF_C_READ, NULL) : NULL;
}

static bool has_information(const struct elf_view *view)
{
    return elf_view_has(view, ".debug_info") || elf_view_has(view, ".zdebug_info");
}

static void read_information(struct symbol_module *module, struct elf_view *view, const char *root)
{
    debug_file_open_common(&module->common, view, root);
    module->common_dwarf = open_dwarf(&module->common);
    module->dwarf = open_dwarf(view);
    if (!module->dwarf)
        return;
    if (module->common_dwarf)
        dwarf_setalt(module->dwarf, module->common_dwarf);
    scope_index_read(&module->scopes, module->dwarf);
}

static struct symbol_module *open_module(const struct native_files *files, struct native_file *file)
{
    static struct elf_view none;
    struct symbol_module *module = calloc(1, sizeof *module);
    struct elf_view *view = &file->view, *debug = &none;
    size_t names;
    if (!module || !view->elf)
        return module;
    bool informs = has_information(view);
    if (!informs || !elf_view_symbols(view, SHT_SYMTAB, &names))
        debug = native_file_debug(files, file);
    symbol_index_read(&module->index, view, debug);
    if (informs || has_information(debug))
        read_information(module, informs ? view : debug, files->root);
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

static struct symbol_module *module_of(struct native_symbols *symbols, struct native_file *file)
{
    struct symbol_module **place = place_of(symbols, file);
    if (!place)
        return NULL;
    if (!*place)
        *place = open_module(symbols->files, file);
    return *place;
}

/* ---- Places ---- */

static void find_line(Dwarf_Die *unit, Dwarf_Addr addr, const char **file, int *number)
{
    Dwarf_Line *line = dwarf_getsrc_die(unit, addr);
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

/* How long SYMBOL is without its version.  Windows' own names, as Wine has them, may begin with a
 * sign. */
static size_t own_bytes(const char *symbol)
{
    return *symbol == '?' || !*symbol ? strlen(symbol) : 1 + strcspn(symbol + 1, "@");
}

/* A stub is called NAME@plt, as in perf. */
char *native_name_shown(const char *name)
{
    size_t bytes = own_bytes(name);
    const char *mark = strcmp(name + bytes, "@plt") == 0 ? name + bytes : "";
    char *own = strndup(name, bytes), *shown = NULL;
    char *plain = own ? demangle(own, DEMANGLED_MOST_BYTES) : NULL;
    if (own && asprintf(&shown, "%s%s", plain ? plain : own, mark) < 0)
        shown = NULL;
    free(plain);
    free(own);
    return shown;
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

/* Leave out inlined calls without a name: their code is their caller's.  The names may be in a file
 * that is not there.  SCOPES' last is the function. */
static size_t leave_out_nameless(Dwarf_Die *scopes, size_t scope_count)
{
    size_t kept = 0;
    for (size_t i = 0; i < scope_count; i++)
        if (i + 1 == scope_count || dwarf_diename(&scopes[i]) || symbol_of(&scopes[i]))
            scopes[kept++] = scopes[i];
    return kept;
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
    struct scope_unit *unit = scope_index_unit(&module->scopes, addr);
    if (!unit)
        return 1;
    const Dwarf_Addr start = addr - places[0].offset;
    find_line(&unit->die, addr, &places[0].file, &places[0].line);
    size_t scope_count =
        leave_out_nameless(scopes, scope_index_at(unit, addr, scopes, NATIVE_PLACES));
    size_t count =
        scope_count ? add_inlined(symbols, &module->scopes, scopes, scope_count, places) : 1;
    struct native_place *function = &places[count - 1];
    if (scope_count)
        find_declaration(&scopes[scope_count - 1], function);
    if (scope_count && !function->name)
        function->name = name_of(symbols, &module->scopes, &scopes[scope_count - 1]);
    if (!function->decl_file && function->name) /* as compilers at run time leave it out */
        find_line(&unit->die, start, &function->decl_file, &function->decl_line);
    for (size_t i = 0; i < count; i++) /* as gcc leaves it out of lambdas */
        if (!places[i].decl_file)
            places[i].decl_file = places[i].file;
    return count;
}

size_t native_symbols_at(struct native_symbols *symbols, struct native_file *file, uint64_t addr,
                         struct native_place places[NATIVE_PLACES])
{
    struct symbol_module *module = module_of(symbols, file);
    places[0] = (struct native_place){0};
    if (!module)
        return 0;
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
            dwarf_end(symbols->modules[i]->dwarf);
            dwarf_end(symbols->modules[i]->common_dwarf);
            elf_view_close(&symbols->modules[i]->common);
            free(symbols->modules[i]);
        }
    for (size_t i = 0; i < symbols->name_count; i++)
        free(symbols->names[i]);
    free(symbols->names);
    free(symbols->modules);
    *symbols = (struct native_symbols){0};
}
