/* Text in HTML and SVG. */
#ifndef PERFJIT_MARKUP_H
#define PERFJIT_MARKUP_H

#include <stdio.h>

/* Put TEXT, which is UTF-8 without control characters, as text or as the value of an attribute. */
void markup_put(FILE *stream, const char *text);

#endif
