/* The names of JIT code as they are shown, everywhere alike: mangled ones as people write them, and
 * without control characters (code_name.h).  A tier's mark stays.
 *
 *     _ZN3app5sieveEPhi [tier2]     app::sieve [tier2]
 *
 * perf demangles the names in ELF files as well, but not all of these, nor behind or in front of a
 * mark: since inject writes shown names, perf shows the same ones as perfjit does. */
#ifndef PERFJIT_JIT_NAME_H
#define PERFJIT_JIT_NAME_H

#include <stddef.h>

/* The BYTES at NAME without mangling, to be freed; NULL: they are shown as they are, or there is no
 * memory. */
char *jit_name_demangled(const char *name, size_t bytes);

/* A copy of the BYTES at NAME as they are shown in ELF files and on terminals (printable_text.h),
 * to be freed; NULL without memory. */
char *jit_name_shown(const char *name, size_t bytes);

#endif
