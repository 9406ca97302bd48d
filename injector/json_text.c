/* See json_text.h. */
#include "injector/json_text.h"

#include "injector/jit/code_name.h"

#include <stdio.h>

void json_text_put(const char *text, size_t size)
{
    putchar('"');
    for (size_t at = 0, bytes; at < size; at += bytes ? bytes : 1) {
        unsigned char first = (unsigned char)text[at];
        bytes = utf8_bytes(text + at, size - at);
        if (first == '"' || first == '\\')
            printf("\\%c", first);
        else if (first < 0x20 || first == 0x7f || bytes == 0)
            printf("\\u%04x", bytes ? first : 0xfffd);
        else
            fwrite(text + at, 1, bytes, stdout);
    }
    putchar('"');
}
