/* Text in a manual page that is written in mdoc(7). */
#ifndef PERFJIT_MDOC_H
#define PERFJIT_MDOC_H

#include <stddef.h>
#include <stdio.h>

/* Write BYTES of TEXT, so that mdoc shows it as it stands.  It may begin a line, or go on in it. */
void mdoc_text(FILE *stream, const char *text, size_t bytes);

#endif
