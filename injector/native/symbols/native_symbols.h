/* Names, lines and inlined calls of native code, from the file's symbols and debug info.
 *
 * The sources are the file that the stack walk read and its debug file below /usr/lib/debug.  The
 * network is never used.
 */
#ifndef PERFJIT_NATIVE_SYMBOLS_H
#define PERFJIT_NATIVE_SYMBOLS_H

#include "injector/native/native_file.h"

/* A place in the source, and its surroundings.  The texts live as long as the symbols. */
struct native_place {
    /* As a symbol, if there is one, else with its namespaces: native_name_shown; or NULL */
    const char *name;
    uint64_t offset;  /* in it */
    const char *file; /* or NULL */
    int line;
    const char *decl_file; /* where the function begins, or NULL */
    int decl_line;
    bool inlined;
};

enum { NATIVE_PLACES = 32 };

struct native_symbols {
    const struct native_files *files;
    struct symbol_module **modules; /* by file number */
    size_t count;
    char **names; /* of functions that have no symbol */
    size_t name_count, name_capacity;
};

/* NAME, of a place, as it is shown: demangled, and without its version (free@@GLIBC_2.2.5).  To be
 * freed; NULL without memory. */
char *native_name_shown(const char *name);

/* The functions at ADDR, an address in FILE: the innermost inlined call first, the function last.
 * Returns their number, 1 at least unless there is no memory, at most NATIVE_PLACES. */
size_t native_symbols_at(struct native_symbols *symbols, struct native_file *file, uint64_t addr,
                         struct native_place places[NATIVE_PLACES]);

void native_symbols_free(struct native_symbols *symbols);

#endif
