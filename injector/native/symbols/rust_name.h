/* Rust's names: its older scheme, which looks like C++'s, and v0 (RFC 2603).
 *
 *     _ZN4acme5inner3run17h03b5a052cf7308efE    acme::inner::run
 *     _RNvNtCs4fqI2P2rA04_4acme5inner3run       acme::inner::run
 *
 * The hash of a function or crate is left out: it is another in each build. */
#ifndef PERFJIT_RUST_NAME_H
#define PERFJIT_RUST_NAME_H

#include <stddef.h>

/* SYMBOL as people write it, in at most MOST bytes, to be freed; NULL: it is not one of these. */
char *rust_name(const char *symbol, size_t most);

#endif
