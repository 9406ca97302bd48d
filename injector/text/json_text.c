/* See json_text.h. */
#include "injector/text/json_text.h"

#include "injector/text/code_name.h"
#include "injector/text/printable_text.h"

#include <inttypes.h>
#include <stdio.h>

/* Put the UTF-8 character of BYTES bytes at TEXT, all of which that is not printable are of the
 * first plane. */
static void put_escaped(const char *text, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)text;
    printf("\\u%04x", bytes == 1   ? at[0]
                      : bytes == 2 ? (at[0] & 0x1fu) << 6 | (at[1] & 0x3fu)
                                   : (at[0] & 0xfu) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu));
}

void json_text_put(const char *text, size_t size)
{
    putchar('"');
    for (size_t at = 0, bytes; at < size; at += bytes ? bytes : 1) {
        bytes = utf8_bytes(text + at, size - at);
        if (text[at] == '"' || text[at] == '\\')
            printf("\\%c", text[at]);
        else if (bytes == 0)
            fputs("\\ufffd", stdout);
        else if (printable_bytes(text + at, size - at) == 0)
            put_escaped(text + at, bytes);
        else
            fwrite(text + at, 1, bytes, stdout);
    }
    putchar('"');
}

void json_number_put(uint64_t value)
{
    printf(value > UINT64_C(1) << 53 ? "\"%" PRIu64 "\"" : "%" PRIu64, value);
}
