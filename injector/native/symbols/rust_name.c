/* See rust_name.h. */
#include "injector/native/symbols/rust_name.h"

#include "injector/native/symbols/mangled_name.h"
#include "injector/text/hex_digit.h"

#include <string.h>

enum { HASH_DIGITS = 16, MOST_PUNYCODE = 256 };

/* No capitals. */
static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static unsigned hex_value(char c)
{
    return (unsigned)hex_digit(c);
}

/* ---- The older scheme ---- */

/* Whether the BYTES at TEXT are the hash: "h" and digits. */
static bool is_hash(const char *text, uint64_t bytes)
{
    if (bytes != HASH_DIGITS + 1 || text[0] != 'h')
        return false;
    for (unsigned i = 1; i <= HASH_DIGITS; i++)
        if (!is_hex(text[i]))
            return false;
    return true;
}

/* A character that symbols can't have, behind its "$". */
static void put_legacy_escape(struct mangled_name *name, struct mangled_name *part)
{
    static const struct {
        const char *code, *text;
    } escapes[] = {{"SP$", "@"}, {"BP$", "*"}, {"RF$", "&"}, {"LT$", "<"},
                   {"GT$", ">"}, {"LP$", "("}, {"RP$", ")"}, {"C$", ","}};
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
        if (mangled_take_text(part, escapes[i].code)) {
            mangled_put(name, escapes[i].text);
            return;
        }
    uint32_t code = 0;
    unsigned digits = 0;
    if (mangled_take(part, 'u'))
        for (; digits < 6 && is_hex(mangled_peek(part)); digits++)
            code = code << 4 | hex_value(mangled_next(part));
    if (digits && mangled_take(part, '$'))
        mangled_put_character(name, code);
    else
        mangled_fail(name);
}

static void put_legacy_part(struct mangled_name *name, const char *text, size_t bytes)
{
    struct mangled_name part;
    mangled_begin(&part, text, bytes, 0);
    if (bytes > 1 && text[0] == '_' && text[1] == '$')
        part.at++;
    while (part.at < part.end && !name->failed)
        if (mangled_take_text(&part, ".."))
            mangled_put(name, "::");
        else if (mangled_take(&part, '$'))
            put_legacy_escape(name, &part);
        else
            mangled_put_bytes(name, part.at++, 1);
}

/* Behind a name the compiler may put more, as ".llvm.1234" or ".cold". */
static bool is_suffix(char c)
{
    return c == '\0' || c == '.' || c == '$';
}

static void read_legacy(struct mangled_name *name)
{
    bool has_hash = false;
    while (!name->failed && !mangled_take(name, 'E')) {
        uint64_t bytes = mangled_decimal(name);
        const char *text = mangled_part(name, bytes);
        if (!text || has_hash)
            mangled_fail(name);
        else if (is_hash(text, bytes))
            has_hash = true;
        else {
            mangled_put(name, name->bytes ? "::" : "");
            put_legacy_part(name, text, bytes);
        }
    }
    if (!has_hash || !is_suffix(mangled_peek(name)))
        mangled_fail(name);
}

/* ---- v0: numbers and identifiers ---- */

/* "_" is 0, "0_" is 1: digits of base 62. */
static uint64_t read_base62(struct mangled_name *name)
{
    uint64_t value = 0;
    if (mangled_take(name, '_'))
        return 0;
    while (!mangled_take(name, '_')) {
        char c = mangled_next(name);
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 10
                         : c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A') + 36
                                                : 62;
        if (digit == 62 || __builtin_mul_overflow(value, 62u, &value) ||
            __builtin_add_overflow(value, digit, &value)) {
            mangled_fail(name);
            return 0;
        }
    }
    if (value == UINT64_MAX)
        mangled_fail(name);
    return value + 1;
}

/* A number that TAG stands in front of, plus 1; 0: there is none. */
static uint64_t read_optional(struct mangled_name *name, char tag)
{
    if (!mangled_take(name, tag))
        return 0;
    uint64_t value = read_base62(name);
    if (value == UINT64_MAX)
        mangled_fail(name);
    return value + 1;
}

struct identifier {
    const char *text;
    size_t bytes;
    bool is_punycode;
};

static struct identifier read_identifier(struct mangled_name *name)
{
    bool is_punycode = mangled_take(name, 'u');
    uint64_t bytes = mangled_decimal(name);
    mangled_take(name, '_');
    const char *text = mangled_part(name, bytes);
    return (struct identifier){text, text ? (size_t)bytes : 0, is_punycode};
}

/* The step of RFC 3492 between two numbers. */
static uint32_t adapt(uint32_t delta, uint32_t points, bool first)
{
    uint32_t k = 0;
    delta = first ? delta / 700 : delta / 2;
    delta += delta / points;
    for (; delta > 455; k += 36)
        delta /= 35;
    return k + 36 * delta / (delta + 38);
}

/* A number of RFC 3492 at *AT; false: there is none. */
static bool read_delta(const char **at, const char *end, uint32_t bias, uint32_t *delta)
{
    uint32_t weight = 1, value = 0;
    for (uint32_t k = 36;; k += 36) {
        if (*at == end)
            return false;
        char c = *(*at)++;
        uint32_t digit = c >= 'a' && c <= 'z'   ? (uint32_t)(c - 'a')
                         : c >= '0' && c <= '9' ? (uint32_t)(c - '0') + 26
                                                : 36;
        uint32_t least = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias, part;
        if (digit == 36 || __builtin_mul_overflow(digit, weight, &part) ||
            __builtin_add_overflow(value, part, &value))
            return false;
        if (digit < least) {
            *delta = value;
            return true;
        }
        if (__builtin_mul_overflow(weight, 36 - least, &weight))
            return false;
    }
}

/* Decode TEXT (RFC 3492, with "_" for its "-") into POINTS.  Returns how many; 0: it is wrong. */
static uint32_t decode_punycode(struct identifier text, uint32_t points[MOST_PUNYCODE])
{
    const char *at = text.text, *end = at + text.bytes;
    const char *plain_end = text.bytes ? memrchr(at, '_', text.bytes) : NULL;
    uint32_t count = 0, code = 0x80, place = 0, bias = 72, delta;
    for (; plain_end && at < plain_end; at++) {
        if (count == MOST_PUNYCODE)
            return 0;
        points[count++] = (unsigned char)*at;
    }
    at += plain_end != NULL;
    for (bool first = true; at < end; first = false) {
        if (count == MOST_PUNYCODE || !read_delta(&at, end, bias, &delta) ||
            __builtin_add_overflow(place, delta, &place))
            return 0;
        count++;
        bias = adapt(delta, count, first);
        if (__builtin_add_overflow(code, place / count, &code))
            return 0;
        place %= count;
        memmove(points + place + 1, points + place, (count - 1 - place) * sizeof *points);
        points[place++] = code;
    }
    return count;
}

static void put_identifier(struct mangled_name *name, struct identifier text)
{
    uint32_t points[MOST_PUNYCODE];
    if (!text.is_punycode) {
        mangled_put_bytes(name, text.text, text.bytes);
        return;
    }
    uint32_t count = name->failed ? 0 : decode_punycode(text, points);
    if (!count)
        mangled_fail(name);
    for (uint32_t i = 0; i < count && !name->failed; i++)
        if (!name->silent)
            mangled_put_character(name, points[i]);
}

/* ---- v0: paths, types, constants ---- */

/* The name, and the lifetimes that "for<...>" around the part at hand has introduced. */
struct reading {
    struct mangled_name *name;
    uint64_t lifetimes;
};

static void read_path(struct reading *reading, bool is_value);
static void read_type(struct reading *reading);
static void read_const(struct reading *reading, bool is_value);

/* A part may stand for one before, by its place behind "_R".  What is not shown is not read again.
 * Go to that part, behind a "B".  Returns where to go on behind it; NULL: there is nothing to read.
 */
static const char *go_back(struct mangled_name *name)
{
    const char *here = name->at - 1;
    uint64_t place = read_base62(name);
    const char *behind = name->at;
    if (name->failed || place >= (uint64_t)(here - name->start)) {
        mangled_fail(name);
        return NULL;
    }
    if (name->silent)
        return NULL;
    name->at = name->start + place;
    return behind;
}

static void go_on(struct mangled_name *name, const char *behind)
{
    if (!name->failed)
        name->at = behind;
}

static void read_again(struct reading *reading, void (*read)(struct reading *reading, bool flag),
                       bool flag)
{
    const char *behind = go_back(reading->name);
    if (!behind)
        return;
    read(reading, flag);
    go_on(reading->name, behind);
}

static void put_lifetime(struct reading *reading, uint64_t index)
{
    struct mangled_name *name = reading->name;
    if (index == 0) {
        mangled_put(name, "'_");
        return;
    }
    if (index > reading->lifetimes) {
        mangled_fail(name);
        return;
    }
    uint64_t depth = reading->lifetimes - index;
    char letter = (char)('a' + depth % 26);
    mangled_put(name, "'");
    mangled_put_bytes(name, depth < 26 ? &letter : "_", 1);
    if (depth >= 26)
        mangled_put_number(name, depth);
}

/* "for<'a, 'b> " */
static void read_binder(struct reading *reading)
{
    uint64_t count = read_optional(reading->name, 'G');
    if (!count)
        return;
    mangled_put(reading->name, "for<");
    for (uint64_t i = 0; i < count && mangled_enter(reading->name); i++) {
        mangled_put(reading->name, i ? ", " : "");
        reading->lifetimes++;
        put_lifetime(reading, 1);
        mangled_leave(reading->name);
    }
    mangled_put(reading->name, "> ");
}

/* Parts up to "E" with ", " between them.  Returns how many. */
static size_t read_list(struct reading *reading, void (*read)(struct reading *reading))
{
    size_t count = 0;
    for (; !reading->name->failed && !mangled_take(reading->name, 'E'); count++) {
        mangled_put(reading->name, count ? ", " : "");
        read(reading);
    }
    return count;
}

static void read_generic(struct reading *reading)
{
    if (mangled_take(reading->name, 'L'))
        put_lifetime(reading, read_base62(reading->name));
    else if (mangled_take(reading->name, 'K'))
        read_const(reading, false);
    else
        read_type(reading);
}

/* The module of an impl is not shown. */
static void skip_impl_path(struct reading *reading)
{
    bool silent = reading->name->silent;
    reading->name->silent = true;
    read_optional(reading->name, 's');
    read_path(reading, false);
    reading->name->silent = silent;
}

/* "<T as Trait>" */
static void read_self(struct reading *reading, bool has_trait)
{
    mangled_put(reading->name, "<");
    read_type(reading);
    if (has_trait) {
        mangled_put(reading->name, " as ");
        read_path(reading, false);
    }
    mangled_put(reading->name, ">");
}

/* What stands in a path: a function "v", a type "t", or a part without a name of its own. */
static void read_nested(struct reading *reading, bool is_value)
{
    struct mangled_name *name = reading->name;
    char space = mangled_next(name);
    if (!((space >= 'a' && space <= 'z') || (space >= 'A' && space <= 'Z')))
        mangled_fail(name);
    read_path(reading, is_value);
    uint64_t number = read_optional(name, 's');
    struct identifier text = read_identifier(name);
    if (space >= 'a') {
        mangled_put(name, text.bytes ? "::" : "");
        put_identifier(name, text);
        return;
    }
    mangled_put(name, "::{");
    if (space == 'C')
        mangled_put(name, "closure");
    else if (space == 'S')
        mangled_put(name, "shim");
    else
        mangled_put_bytes(name, &space, 1);
    mangled_put(name, text.bytes ? ":" : "");
    put_identifier(name, text);
    mangled_put(name, "#");
    mangled_put_number(name, number);
    mangled_put(name, "}");
}

/* A path; in a value "::" stands in front of its generic arguments. */
static void read_path(struct reading *reading, bool is_value)
{
    struct mangled_name *name = reading->name;
    if (!mangled_enter(name))
        return;
    switch (mangled_next(name)) {
    case 'C':
        read_optional(name, 's');
        put_identifier(name, read_identifier(name));
        break;
    case 'M':
        skip_impl_path(reading);
        read_self(reading, false);
        break;
    case 'X':
        skip_impl_path(reading);
        read_self(reading, true);
        break;
    case 'Y':
        read_self(reading, true);
        break;
    case 'N':
        read_nested(reading, is_value);
        break;
    case 'I':
        read_path(reading, is_value);
        mangled_put(name, is_value ? "::<" : "<");
        read_list(reading, read_generic);
        mangled_put(name, ">");
        break;
    case 'B':
        read_again(reading, read_path, is_value);
        break;
    default:
        mangled_fail(name);
    }
    mangled_leave(name);
}

static const char *basic_type(char tag)
{
    static const char *const types['z' + 1] = {
        ['a'] = "i8",  ['b'] = "bool", ['c'] = "char",  ['d'] = "f64",   ['e'] = "str",
        ['f'] = "f32", ['h'] = "u8",   ['i'] = "isize", ['j'] = "usize", ['l'] = "i32",
        ['m'] = "u32", ['n'] = "i128", ['o'] = "u128",  ['p'] = "_",     ['s'] = "i16",
        ['t'] = "u16", ['u'] = "()",   ['v'] = "...",   ['x'] = "i64",   ['y'] = "u64",
        ['z'] = "!"};
    return tag > 0 && tag <= 'z' ? types[(unsigned char)tag] : NULL;
}

static void read_reference(struct reading *reading, const char *mutable)
{
    mangled_put(reading->name, "&");
    if (mangled_take(reading->name, 'L')) {
        uint64_t index = read_base62(reading->name);
        if (index) {
            put_lifetime(reading, index);
            mangled_put(reading->name, " ");
        }
    }
    mangled_put(reading->name, mutable);
    read_type(reading);
}

/* The name of a calling convention has "_" for "-". */
static void read_abi(struct reading *reading)
{
    struct mangled_name *name = reading->name;
    mangled_put(name, "extern \"");
    if (mangled_take(name, 'C'))
        mangled_put(name, "C");
    else {
        struct identifier text = read_identifier(name);
        for (size_t i = 0; i < text.bytes; i++)
            mangled_put_bytes(name, text.text[i] == '_' ? "-" : text.text + i, 1);
    }
    mangled_put(name, "\" ");
}

static void read_function(struct reading *reading)
{
    struct mangled_name *name = reading->name;
    uint64_t lifetimes = reading->lifetimes;
    read_binder(reading);
    mangled_put(name, mangled_take(name, 'U') ? "unsafe " : "");
    if (mangled_take(name, 'K'))
        read_abi(reading);
    mangled_put(name, "fn(");
    read_list(reading, read_type);
    mangled_put(name, ")");
    if (!mangled_take(name, 'u')) {
        mangled_put(name, " -> ");
        read_type(reading);
    }
    reading->lifetimes = lifetimes;
}

/* The path of a trait, whose "<" stays open if it has generic arguments: others follow.  Returns
 * whether it is open. */
static bool read_open_path(struct reading *reading)
{
    struct mangled_name *name = reading->name;
    bool is_open = false;
    if (!mangled_enter(name))
        return false;
    if (mangled_take(name, 'B')) {
        const char *behind = go_back(name);
        if (behind) {
            is_open = read_open_path(reading);
            go_on(name, behind);
        }
    } else if (mangled_take(name, 'I')) {
        read_path(reading, false);
        mangled_put(name, "<");
        read_list(reading, read_generic);
        is_open = true;
    } else
        read_path(reading, false);
    mangled_leave(name);
    return is_open;
}

/* A trait with the types that are bound to it: "Iterator<Item = u8>". */
static void read_trait(struct reading *reading)
{
    struct mangled_name *name = reading->name;
    bool is_open = read_open_path(reading);
    while (mangled_take(name, 'p')) {
        mangled_put(name, is_open ? ", " : "<");
        is_open = true;
        put_identifier(name, read_identifier(name));
        mangled_put(name, " = ");
        read_type(reading);
    }
    mangled_put(name, is_open ? ">" : "");
}

static void read_dyn(struct reading *reading)
{
    struct mangled_name *name = reading->name;
    uint64_t lifetimes = reading->lifetimes;
    mangled_put(name, "dyn ");
    read_binder(reading);
    for (size_t i = 0; !name->failed && !mangled_take(name, 'E'); i++) {
        mangled_put(name, i ? " + " : "");
        read_trait(reading);
    }
    reading->lifetimes = lifetimes;
    if (!mangled_take(name, 'L'))
        mangled_fail(name);
    uint64_t index = read_base62(name);
    if (index) {
        mangled_put(name, " + ");
        put_lifetime(reading, index);
    }
}

static void read_type_again(struct reading *reading, bool flag)
{
    (void)flag;
    read_type(reading);
}

static void read_tuple(struct reading *reading)
{
    mangled_put(reading->name, "(");
    mangled_put(reading->name, read_list(reading, read_type) == 1 ? ",)" : ")");
}

static void read_array(struct reading *reading)
{
    mangled_put(reading->name, "[");
    read_type(reading);
    mangled_put(reading->name, "; ");
    read_const(reading, true);
    mangled_put(reading->name, "]");
}

static void read_compound_type(struct reading *reading, char tag)
{
    struct mangled_name *name = reading->name;
    switch (tag) {
    case 'A':
        read_array(reading);
        break;
    case 'S':
        mangled_put(name, "[");
        read_type(reading);
        mangled_put(name, "]");
        break;
    case 'T':
        read_tuple(reading);
        break;
    case 'R':
        read_reference(reading, "");
        break;
    case 'Q':
        read_reference(reading, "mut ");
        break;
    case 'P':
        mangled_put(name, "*const ");
        read_type(reading);
        break;
    case 'O':
        mangled_put(name, "*mut ");
        read_type(reading);
        break;
    case 'F':
        read_function(reading);
        break;
    case 'D':
        read_dyn(reading);
        break;
    case 'B':
        read_again(reading, read_type_again, false);
        break;
    default:
        name->at--;
        read_path(reading, false);
    }
}

static void read_type(struct reading *reading)
{
    struct mangled_name *name = reading->name;
    if (!mangled_enter(name))
        return;
    char tag = mangled_next(name);
    const char *basic = basic_type(tag);
    if (basic)
        mangled_put(name, basic);
    else if (tag)
        read_compound_type(reading, tag);
    else
        mangled_fail(name);
    mangled_leave(name);
}

/* Hexadecimal digits up to "_"; NULL: there are none. */
static const char *read_digits(struct mangled_name *name, size_t *count)
{
    const char *first = name->at;
    while (is_hex(mangled_peek(name)))
        name->at++;
    *count = (size_t)(name->at - first);
    if (!mangled_take(name, '_'))
        mangled_fail(name);
    return name->failed ? NULL : first;
}

static void read_integer(struct mangled_name *name)
{
    size_t count;
    uint64_t value = 0;
    if (mangled_take(name, 'n'))
        mangled_put(name, "-");
    const char *digits = read_digits(name, &count);
    if (!digits)
        return;
    for (size_t i = 0; i < count && count <= 16; i++)
        value = value << 4 | hex_value(digits[i]);
    if (count <= 16)
        mangled_put_number(name, value);
    else {
        mangled_put(name, "0x");
        mangled_put_bytes(name, digits, count);
    }
}

/* A small number: that of a bool or a character. */
static uint32_t read_small(struct mangled_name *name)
{
    size_t count;
    uint32_t value = 0;
    const char *digits = read_digits(name, &count);
    if (!digits || count > 6)
        mangled_fail(name);
    for (size_t i = 0; !name->failed && i < count; i++)
        value = value << 4 | hex_value(digits[i]);
    return value;
}

static void read_bool(struct mangled_name *name)
{
    uint32_t value = read_small(name);
    if (value > 1)
        mangled_fail(name);
    mangled_put(name, value ? "true" : "false");
}

static void read_character(struct mangled_name *name)
{
    uint32_t code = read_small(name);
    mangled_put(name, code == '\'' || code == '\\' ? "'\\" : "'");
    if (!name->failed)
        mangled_put_character(name, code);
    mangled_put(name, "'");
}

/* A text: the digits of its bytes. */
static void read_text(struct mangled_name *name)
{
    size_t count;
    const char *digits = read_digits(name, &count);
    if (!digits || count % 2)
        mangled_fail(name);
    mangled_put(name, "\"");
    for (size_t i = 0; !name->failed && i < count; i += 2) {
        char byte = (char)(hex_value(digits[i]) << 4 | hex_value(digits[i + 1]));
        if (byte == '"' || byte == '\\')
            mangled_put(name, "\\");
        mangled_put_bytes(name, &byte, 1);
    }
    mangled_put(name, "\"");
}

static void read_value(struct reading *reading)
{
    read_const(reading, true);
}

static void read_field(struct reading *reading)
{
    read_optional(reading->name, 's');
    put_identifier(reading->name, read_identifier(reading->name));
    mangled_put(reading->name, ": ");
    read_const(reading, true);
}

/* A value of a struct or an enum. */
static void read_variant(struct reading *reading)
{
    struct mangled_name *name = reading->name;
    read_path(reading, true);
    switch (mangled_next(name)) {
    case 'U':
        break;
    case 'T':
        mangled_put(name, "(");
        read_list(reading, read_value);
        mangled_put(name, ")");
        break;
    case 'S':
        mangled_put(name, " { ");
        read_list(reading, read_field);
        mangled_put(name, " }");
        break;
    default:
        mangled_fail(name);
    }
}

static void read_compound_const(struct reading *reading, char tag)
{
    struct mangled_name *name = reading->name;
    switch (tag) {
    case 'R':
    case 'Q':
        if (tag == 'R' && mangled_take(name, 'e')) {
            read_text(name);
            break;
        }
        mangled_put(name, tag == 'R' ? "&" : "&mut ");
        read_const(reading, true);
        break;
    case 'A':
        mangled_put(name, "[");
        read_list(reading, read_value);
        mangled_put(name, "]");
        break;
    case 'T':
        mangled_put(name, "(");
        mangled_put(name, read_list(reading, read_value) == 1 ? ",)" : ")");
        break;
    case 'V':
        read_variant(reading);
        break;
    default:
        mangled_fail(name);
    }
}

/* A constant; among types, not as a VALUE, those of more than a word stand in braces. */
static void read_const(struct reading *reading, bool is_value)
{
    struct mangled_name *name = reading->name;
    if (!mangled_enter(name))
        return;
    char tag = mangled_next(name);
    bool is_braced = !is_value && tag && strchr("eRQATV", tag) && mangled_peek(name) != 'e';
    mangled_put(name, is_braced ? "{" : "");
    if (tag == 'p')
        mangled_put(name, "_");
    else if (tag == 'B')
        read_again(reading, read_const, is_value);
    else if (tag == 'b')
        read_bool(name);
    else if (tag == 'c')
        read_character(name);
    else if (tag == 'e') {
        mangled_put(name, "*");
        read_text(name);
    } else if (tag && strchr("ahijlmnostxy", tag))
        read_integer(name);
    else
        read_compound_const(reading, tag);
    mangled_put(name, is_braced ? "}" : "");
    mangled_leave(name);
}

static void read_v0(struct mangled_name *name)
{
    struct reading reading = {name, 0};
    name->start = name->at; /* of which the references' numbers count */
    if (mangled_peek(name) >= '0' && mangled_peek(name) <= '9')
        mangled_fail(name); /* a version that is not known */
    read_path(&reading, true);
    if (mangled_peek(name) >= 'A' && mangled_peek(name) <= 'Z') {
        name->silent = true; /* the crate that needed the code */
        read_path(&reading, false);
        name->silent = false;
    }
    if (!is_suffix(mangled_peek(name)))
        mangled_fail(name);
}

char *rust_name(const char *symbol, size_t most)
{
    struct mangled_name name;
    mangled_begin(&name, symbol, strlen(symbol), most);
    if (mangled_take_text(&name, "_R"))
        read_v0(&name);
    else if (mangled_take_text(&name, "_ZN"))
        read_legacy(&name);
    else
        mangled_fail(&name);
    return mangled_end(&name);
}
