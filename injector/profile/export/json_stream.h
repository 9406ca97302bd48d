/* JSON on a stream, for formats that others read: names, and commas between the parts of lists. */
#ifndef PERFJIT_JSON_STREAM_H
#define PERFJIT_JSON_STREAM_H

#include <stdio.h>

/* Put TEXT, which is UTF-8 without control characters, in quotes.  "<", what ends a line of
 * JavaScript and what changes the direction of text are escaped, so that it can stand in a page and
 * on a terminal. */
void json_stream_text(FILE *stream, const char *text);

/* The same without the quotes, where more follows in them. */
void json_stream_part(FILE *stream, const char *text);

/* Put a comma, but not in front of the first: *COUNT counts. */
void json_stream_comma(FILE *stream, size_t *count);

#endif
