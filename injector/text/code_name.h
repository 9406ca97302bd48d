/* Names of functions, fit for a symbol table: perf, gdb and objdump print them as they are.  Every
 * name of JIT code is looked at here, on its way from a dump, a perf map or a list of inlined calls
 * to its reader.  One that can be printed stays where it is, in the file.  Another is copied, and
 * the copy has a length of its own.  The rules for the characters and the length of a name are here
 * alone.
 *
 * A name that holds a newline breaks a line of perf script in two, and one with an escape sequence
 * controls the terminal.  Names are taken from source text, and so may hold anything but NUL.
 */
#ifndef PERFJIT_CODE_NAME_H
#define PERFJIT_CODE_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the BYTES bytes at NAME can be printed: UTF-8 without control characters.  A name that
 * can't is reported as the producer's fault. */
bool code_name_is_printable(const char *name, size_t bytes);

/* A copy of NAME that can be printed, NUL-terminated, to be freed.  Control characters that are
 * white space become spaces; each byte of other control characters, and each that is not UTF-8, a
 * question mark.  NULL without memory.  Paths and threads' names are copied so, too. */
char *code_name_printable(const char *name, size_t bytes);

#endif
