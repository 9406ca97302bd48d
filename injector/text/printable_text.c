/* See printable_text.h. */
#include "injector/text/printable_text.h"

#include "injector/text/code_name.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The code point of the UTF-8 character of BYTES bytes at TEXT. */
static uint32_t code_point(const char *text, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)text;
    uint32_t code = bytes == 1 ? at[0] : at[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++)
        code = code << 6 | (at[i] & 0x3f);
    return code;
}

static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

/* Line separators, and characters that make a terminal reorder the text around them. */
static bool is_layout(uint32_t code)
{
    return code == 0x061c || code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0xfeff;
}

size_t printable_bytes(const char *text, size_t size)
{
    size_t bytes = utf8_bytes(text, size);
    uint32_t code = bytes ? code_point(text, bytes) : 0;
    return is_control(code) || is_layout(code) ? 0 : bytes;
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
    FILE *stream = open_memstream(&copy, &size);
    if (!stream)
        return NULL;
    printable_put(stream, text);
    if (fclose(stream) == 0)
        return copy;
    free(copy);
    return NULL;
}
