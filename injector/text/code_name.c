/* See code_name.h. */
#include "injector/text/code_name.h"

#include <stdint.h>
#include <stdlib.h>
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

/* C0 and DEL, and C1, which terminals obey as well. */
static bool is_control(const unsigned char *at, size_t count)
{
    return count == 1 ? at[0] < 0x20 || at[0] == 0x7f : at[0] == 0xc2 && at[1] < 0xa0;
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

/* Nearly all names are clean, and every name is checked. */
static bool is_printable_ascii(const char *name, size_t bytes)
{
    uint64_t wrong = 0;
    size_t i = 0;
    for (; i + 8 <= bytes; i += 8)
        wrong |= unprintable(name + i);
    for (; i < bytes; i++)
        wrong |= name[i] < 0x20 || name[i] >= 0x7f;
    return wrong == 0;
}

bool code_name_is_printable(const char *name, size_t bytes)
{
    if (is_printable_ascii(name, bytes))
        return true;
    for (size_t at = 0, count; at < bytes; at += count) {
        count = utf8_bytes(name + at, bytes - at);
        if (count == 0 || is_control((const unsigned char *)name + at, count))
            return false;
    }
    return true;
}

char *code_name_printable(const char *name, size_t bytes)
{
    char *cleaned = malloc(bytes + 1);
    if (!cleaned)
        return NULL;
    memcpy(cleaned, name, bytes);
    cleaned[bytes] = '\0';
    for (size_t at = 0, count; at < bytes; at += count) {
        count = utf8_bytes(name + at, bytes - at);
        if (count && !is_control((const unsigned char *)name + at, count))
            continue;
        count = count ? count : 1;
        memset(cleaned + at, name[at] >= '\t' && name[at] <= '\r' ? ' ' : '?', count);
    }
    return cleaned;
}

bool code_name_is_clean(const char *name, size_t bytes)
{
    return code_name_is_printable(name, bytes);
}

char *code_name_clean(const char *name, size_t bytes)
{
    return code_name_printable(name, bytes);
}
