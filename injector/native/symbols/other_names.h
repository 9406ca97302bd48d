/* Names of D, OCaml and Swift, and of Java in JVMs' logs, as people write them.
 *
 *     _D3std5stdio__T7writelnTiZQmFiZv    std.stdio.writeln!(int).writeln
 *     camlStdlib__List__map_123           Stdlib.List.map_123
 *     $s4main3FooC3bar1xySi_tF            main.Foo.bar
 *     Ljava/lang/String;indexOf(II)I      java.lang.String.indexOf(int, int)
 *
 * Parameters are left out, but for Java's: its overloads are told apart by them everywhere.  Of
 * Swift's names those are known that are made of modules, types and functions. */
#ifndef PERFJIT_OTHER_NAMES_H
#define PERFJIT_OTHER_NAMES_H

#include <stddef.h>

/* SYMBOL as people write it, in at most MOST bytes, to be freed; NULL: it is not one of these. */
char *d_name(const char *symbol, size_t most);
char *ocaml_name(const char *symbol, size_t most);
char *swift_name(const char *symbol, size_t most);
char *java_name(const char *symbol, size_t most);

#endif
