/* See mdoc.h. */
#include "injector/text/mdoc.h"

#include <stdbool.h>
#include <string.h>

void mdoc_text(FILE *stream, const char *text, size_t bytes)
{
    bool begins = true;
    for (size_t i = 0; i < bytes; i++) {
        if (begins && (text[i] == '.' || text[i] == '\''))
            fputs("\\&", stream); /* else it is a macro */
        begins = text[i] == '\n';
        if (text[i] == '\\') {
            fputs("\\e", stream);
        } else if (text[i] == '-') {
            fputs("\\-", stream); /* else it is a hyphen, which no shell takes for an option */
        } else if (i + 3 < bytes && strncmp(text + i, ".  ", 3) == 0) {
            fputs(".\n", stream); /* a sentence begins a line */
            i += 2;
            begins = true;
        } else {
            putc(text[i], stream);
        }
    }
}
