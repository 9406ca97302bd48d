/* See markup.h. */
#include "injector/flamegraph/markup.h"

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

void markup_put(FILE *stream, const char *text)
{
    for (; *text; text++)
        if (entity(*text))
            fputs(entity(*text), stream);
        else
            putc(*text, stream);
}
