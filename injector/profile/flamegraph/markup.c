/* See markup.h. */
#include "injector/profile/flamegraph/markup.h"

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
    for (; *text; text++)
        if (strncmp(text, "\xef\xbf\xbe", 3) == 0 || strncmp(text, "\xef\xbf\xbf", 3) == 0) {
            putc('?', stream);
            text += 2;
        } else if (entity(*text)) {
            fputs(entity(*text), stream);
        } else {
            putc(*text, stream);
        }
}
