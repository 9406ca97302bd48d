/* See printable_text.h. */
#include "injector/text/printable_text.h"

#include "injector/text/character.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

size_t printable_bytes(const char *text, size_t size)
{
    size_t count;
    return character_at(text, size, &count) == CHARACTER_PLAIN ? count : 0;
}

bool printable_is(const char *text)
{
    size_t left = strlen(text), bytes;
    if (characters_are_plain_ascii(text, left))
        return true;
    for (; left; left -= bytes, text += bytes)
        if ((bytes = printable_bytes(text, left)) == 0)
            return false;
    return true;
}

void printable_put(FILE *stream, const char *text)
{
    for (size_t left = strlen(text), bytes; left; left -= bytes, text += bytes) {
        bytes = printable_bytes(text, left);
        if (bytes) {
            fwrite(text, 1, bytes, stream);
            continue;
        }
        fprintf(stream, "\\x%02x", (unsigned char)*text);
        bytes = 1;
    }
}

/* Without memory a long line is truncated: better than none, since it may report the lack of
 * memory. */
void printable_line(FILE *stream, const char *format, ...)
{
    char small[1024], *text = small;
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(small, sizeof small, format, arguments);
    if (length >= (int)sizeof small) {
        text = malloc((size_t)length + 1);
        if (text)
            vsnprintf(text, (size_t)length + 1, format, again);
    }
    va_end(again);
    va_end(arguments);
    printable_put(stream, text ? text : small);
    putc('\n', stream);
    if (text != small)
        free(text);
}

char *printable_copy(const char *text)
{
    char *copy = NULL;
    size_t size;
    if (printable_is(text))
        return strdup(text);
    FILE *stream = open_memstream(&copy, &size);
    if (!stream)
        return NULL;
    printable_put(stream, text);
    if (fclose(stream) == 0)
        return copy;
    free(copy);
    return NULL;
}
