/* Names of functions as tables show them: the long parts that tell nothing new are left out. */
#ifndef PERFJIT_SHORT_NAME_H
#define PERFJIT_SHORT_NAME_H

#include <stddef.h>

/* NAME into the BYTES at TEXT: without Java's return type and packages, and with <...> for long
 * template arguments.  Returns TEXT; NAME itself, if it is as short or does not fit. */
const char *short_name(const char *name, char *text, size_t bytes);

#endif
