/* See v8_place.h. */
#include "injector/log/script/v8_place.h"

#include "injector/text/affix.h"

#include <ctype.h>
#include <string.h>

enum { DIGITS_MOST = 9 };

/* Take ":NUMBER" off the end of the *BYTES at TEXT; false: there is none.  *NUMBER is 0 if it is
 * not above that. */
static bool take_number(const char *text, size_t *bytes, uint32_t *number)
{
    uint32_t value = 0, weight = 1;
    size_t digits = 0;
    for (unsigned digit; digits < *bytes && digits < DIGITS_MOST &&
                         (digit = (unsigned)text[*bytes - 1 - digits] - '0') < 10;
         digits++, weight *= 10)
        value += digit * weight;
    const size_t begin = *bytes - digits; /* of the digits */
    const bool is_negative = begin > 1 && text[begin - 1] == '-';
    const size_t left = begin - is_negative;
    if (digits == 0 || !left || text[left - 1] != ':')
        return false;
    *bytes = left - 1;
    *number = is_negative ? 0 : value;
    return true;
}

/* Whether "SCHEME://" begins the BYTES at TEXT, with any scheme: "webpack-internal:". */
static bool has_host(const char *text, size_t bytes)
{
    size_t at = 0;
    while (at < bytes && (isalnum((unsigned char)text[at]) || strchr("+-.", text[at])))
        at++;
    return text_begins(text + at, bytes - at, "://");
}

/* Whether a path from the root, a URL, code of node's -e or a place without a file begins the BYTES
 * at TEXT: "/", "node:", "C:", "[eval]", "[worker eval]", ":12:5". */
static bool begins_place(const char *text, size_t bytes)
{
    size_t at = 0;
    if (text_begins(text, bytes, "/") || text_begins(text, bytes, "[eval]") ||
        text_begins(text, bytes, "[worker eval]"))
        return true;
    const size_t sign = bytes > 2 && text[1] == '-';
    if (bytes > 1 && text[0] == ':' && isdigit((unsigned char)text[1 + sign]))
        return true;
    while (at < bytes && isalpha((unsigned char)text[at]))
        at++;
    if (at && at < bytes && strchr("+-.", text[at]))
        return has_host(text, bytes);
    return at && at + 1 < bytes && text[at] == ':' && text[at + 1] != ' ';
}

/* Whether the name at TEXT goes on behind its first word: accessors, bound functions, LuaJIT's
 * traces. */
static bool has_two_words(const char *text, size_t bytes)
{
    return text_begins(text, bytes, "get ") || text_begins(text, bytes, "set ") ||
           text_begins(text, bytes, "bound ") || text_begins(text, bytes, "TRACE ");
}

/* The space in front of the place.  Names of functions may have spaces ("get x", a key of an
 * object), as paths may: the first one behind which a place clearly begins, else the first behind
 * the name. */
static const char *find_space(const char *text, size_t bytes)
{
    const char *end = text + bytes, *first = memchr(text, ' ', bytes), *second;
    for (const char *space = first; space;
         space = memchr(space + 1, ' ', (size_t)(end - space - 1)))
        if (begins_place(space + 1, (size_t)(end - space - 1)))
            return space;
    if (!has_two_words(text, bytes))
        return first;
    second = memchr(first + 1, ' ', (size_t)(end - first - 1));
    return second ? second : first;
}

bool v8_place_may_be(const char *text, size_t bytes)
{
    uint32_t number;
    return take_number(text, &bytes, &number);
}

bool v8_place_of(const char *text, size_t bytes, struct v8_place *place)
{
    const char *space = bytes ? find_space(text, bytes) : NULL;
    if (!space)
        return false;
    size_t left = bytes - (size_t)(space + 1 - text);
    uint32_t last = 0, before = 0;
    const bool has_last = take_number(space + 1, &left, &last);
    const bool has_both = has_last && take_number(space + 1, &left, &before);
    *place = (struct v8_place){(size_t)(space - text), space + 1, left, has_both ? before : last,
                               before ? last : 0};
    return has_both || (last && left);
}
