/* See json_stream.h. */
#include "injector/profile/export/json_stream.h"

#include "injector/text/code_name.h"
#include "injector/text/printable_text.h"

#include <string.h>

/* Line separators, and what makes a terminal or a page reorder the text around it: all of it has
 * two or three bytes.  Returns how many, or 0 if TEXT does not begin with one. */
static size_t put_layout(FILE *stream, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t bytes = utf8_bytes(text, strnlen(text, 4));
    if (bytes < 2 || bytes > 3 || printable_bytes(text, bytes))
        return 0;
    fprintf(stream, "\\u%04x",
            bytes == 2 ? (at[0] & 0x1fu) << 6 | (at[1] & 0x3fu)
                       : (at[0] & 0xfu) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu));
    return bytes;
}

void json_stream_part(FILE *stream, const char *text)
{
    size_t bytes;
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            fprintf(stream, "\\%c", *text);
        else if (*text == '<' || (unsigned char)*text < ' ')
            fprintf(stream, "\\u%04x", (unsigned char)*text);
        else if ((unsigned char)*text >= 0x80 && (bytes = put_layout(stream, text)) != 0)
            text += bytes - 1;
        else
            putc(*text, stream);
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
