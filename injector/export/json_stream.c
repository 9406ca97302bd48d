/* See json_stream.h. */
#include "injector/export/json_stream.h"

#include <string.h>

void json_stream_part(FILE *stream, const char *text)
{
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            fprintf(stream, "\\%c", *text);
        else if (*text == '<' || (unsigned char)*text < ' ')
            fprintf(stream, "\\u%04x", (unsigned char)*text);
        else if (strncmp(text, "\xe2\x80\xa8", 3) == 0 || strncmp(text, "\xe2\x80\xa9", 3) == 0) {
            fprintf(stream, "\\u202%c", text[2] == '\xa8' ? '8' : '9');
            text += 2;
        } else {
            putc(*text, stream);
        }
}

void json_stream_text(FILE *stream, const char *text)
{
    putc('"', stream);
    json_stream_part(stream, text);
    putc('"', stream);
}

void json_stream_comma(FILE *stream, size_t *count)
{
    if ((*count)++)
        putc(',', stream);
}
