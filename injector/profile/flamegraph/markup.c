/* See markup.h. */
#include "injector/profile/flamegraph/markup.h"

#include "injector/text/printable_text.h"

#include <string.h>

static const char *entity(char letter)
{
    switch (letter) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

/* U+FFFE and U+FFFF are no characters of XML. */
void markup_put(FILE *stream, const char *text)
{
    size_t left = strlen(text), bytes;
    for (; left; left -= bytes, text += bytes) {
        bytes = printable_bytes(text, left);
        if (bytes == 0) {
            fprintf(stream, "\\x%02x", (unsigned char)*text);
            bytes = 1;
        } else if (strncmp(text, "\xef\xbf\xbe", 3) == 0 || strncmp(text, "\xef\xbf\xbf", 3) == 0) {
            putc('?', stream);
        } else if (entity(*text)) {
            fputs(entity(*text), stream);
        } else {
            fwrite(text, 1, bytes, stream);
        }
    }
}
