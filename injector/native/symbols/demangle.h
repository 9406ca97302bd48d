/* Names of C++, Rust, D, OCaml, Swift and Java as people write them, without the parameters, as
 * perf shows those that it knows. */
#ifndef PERFJIT_DEMANGLE_H
#define PERFJIT_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the BYTES at NAME may be mangled, by how they begin. */
bool demangle_may(const char *name, size_t bytes);

enum { DEMANGLED_MOST_BYTES = 1 << 16 }; /* of a name that people may have to read */

/* SYMBOL as it is shown, to be freed; NULL: it is shown as it is, as one is that stands for more
 * than MOST bytes. */
char *demangle(const char *symbol, size_t most);

#endif
