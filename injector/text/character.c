/* See character.h. */
#include "injector/text/character.h"

#include <stdint.h>
#include <string.h>

size_t utf8_bytes(const char *text, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t count = at[0] < 0x80                    ? 1
                   : at[0] >= 0xc2 && at[0] < 0xe0 ? 2
                   : at[0] >= 0xe0 && at[0] < 0xf0 ? 3
                   : at[0] >= 0xf0 && at[0] < 0xf5 ? 4
                                                   : 0;
    if (count > bytes)
        return 0;
    for (size_t i = 1; i < count; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if (count < 3)
        return count;
    bool surrogate = at[0] == 0xed && at[1] >= 0xa0;
    bool overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    bool too_high = at[0] == 0xf4 && at[1] >= 0x90;
    return surrogate || overlong || too_high ? 0 : count;
}

uint32_t utf8_code(const char *text, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)text;
    uint32_t code = bytes == 1 ? at[0] : at[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++)
        code = code << 6 | (at[i] & 0x3f);
    return code;
}

size_t utf8_put(char to[UTF8_MOST_BYTES], uint32_t code)
{
    size_t bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = bytes; i-- > 1; code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)(bytes == 1 ? code : (0xf00u >> bytes & 0xff) | code);
    return bytes;
}

/* Unicode's Default_Ignorable_Code_Point, the separators of lines, and the marks of annotations. */
static bool is_hidden(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x00ad, 0x00ad},   {0x034f, 0x034f}, {0x061c, 0x061c},   {0x115f, 0x1160},
        {0x17b4, 0x17b5},   {0x180b, 0x180f}, {0x200b, 0x200f},   {0x2028, 0x202e},
        {0x2060, 0x206f},   {0x3164, 0x3164}, {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
        {0xffa0, 0xffa0},   {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
        {0xe0000, 0xe0fff},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (code <= ranges[i].last)
            return code >= ranges[i].first;
    return false;
}

enum character character_at(const char *text, size_t bytes, size_t *count)
{
    *count = utf8_bytes(text, bytes);
    if (*count == 0) {
        *count = 1;
        return CHARACTER_BROKEN;
    }
    uint32_t code = utf8_code(text, *count);
    if (code < 0x20 || (code >= 0x7f && code < 0xa0))
        return CHARACTER_CONTROL;
    return is_hidden(code) ? CHARACTER_HIDDEN : CHARACTER_PLAIN;
}

/* Eight characters at once: the top bit of a byte is set where one is not in 0x20 to 0x7e.  A carry
 * can only come from a byte that is itself not. */
static uint64_t unprintable(const char *name)
{
    const uint64_t each = UINT64_C(0x0101010101010101), top = each * 0x80;
    uint64_t eight;
    memcpy(&eight, name, sizeof eight);
    return (eight | (eight + each) | (eight - each * 0x20)) & top;
}

bool characters_are_plain_ascii(const char *name, size_t bytes)
{
    uint64_t wrong = 0;
    size_t i = 0;
    for (; i + 8 <= bytes; i += 8)
        wrong |= unprintable(name + i);
    if (bytes >= 8)
        return (wrong | unprintable(name + bytes - 8)) == 0; /* some are looked at twice */
    for (; i < bytes; i++)
        wrong |= name[i] < 0x20 || name[i] >= 0x7f;
    return wrong == 0;
}
