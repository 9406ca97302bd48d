/* Names of C++ and Rust (its older scheme) as people write them, without the parameters, as perf
 * shows them. */
#ifndef PERFJIT_DEMANGLE_H
#define PERFJIT_DEMANGLE_H

/* SYMBOL as it is shown, to be freed; NULL: it is shown as it is, as one is that stands for more
 * than 64 KiB. */
char *demangle(const char *symbol);

#endif
