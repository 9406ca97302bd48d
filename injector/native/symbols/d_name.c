/* D: https://dlang.org/spec/abi.html#name_mangling.  The names of modules, types and functions
 * follow each other.  A function in a function stands behind the parameters of the outer one. */
#include "injector/native/symbols/mangled_name.h"
#include "injector/native/symbols/other_names.h"
#include "injector/text/hex_digit.h"

#include <ctype.h>
#include <string.h>

static void read_type(struct mangled_name *name);
static void read_qualified(struct mangled_name *name);
static void read_whole(struct mangled_name *name);

static void read_silently(struct mangled_name *name, void (*read)(struct mangled_name *name))
{
    bool silent = name->silent;
    name->silent = true;
    read(name);
    name->silent = silent;
}

/* ---- References ---- */

/* The place that "Q" and a number of base 26 at AT refer to; NULL: none.  *BEHIND is behind it. */
static const char *referred(const struct mangled_name *name, const char *at, const char **behind)
{
    const char *here = at;
    uint64_t distance = 0;
    for (at++; at < name->end && *at >= 'A' && *at <= 'Z' && distance < UINT32_MAX; at++)
        distance = distance * 26 + (uint64_t)(*at - 'A');
    if (at >= name->end || *at < 'a' || *at > 'z')
        return NULL;
    distance = distance * 26 + (uint64_t)(*at - 'a');
    *behind = at + 1;
    return distance && distance <= (uint64_t)(here - name->start) ? here - distance : NULL;
}

/* Whether a symbol's name begins at the next byte: "3foo", "__T...", or a reference to such. */
static bool begins_symbol(const struct mangled_name *name)
{
    const char *behind, *at = name->at;
    if (mangled_peek(name) == 'Q')
        at = referred(name, at, &behind);
    return at && at < name->end &&
           (isdigit((unsigned char)*at) ||
            (name->end - at > 3 && at[0] == '_' && at[1] == '_' && (at[2] == 'T' || at[2] == 'U')));
}

/* ---- Values ---- */

/* A text in hexadecimal digits. */
static void read_string(struct mangled_name *name)
{
    uint64_t bytes = mangled_decimal(name);
    if (!mangled_take(name, '_'))
        mangled_fail(name);
    mangled_put(name, "\"");
    for (uint64_t i = 0; i < bytes && !name->failed; i++) {
        const char *digits = mangled_part(name, 2);
        int high = digits ? hex_digit(digits[0]) : -1, low = digits ? hex_digit(digits[1]) : -1;
        if (high < 0 || low < 0) {
            mangled_fail(name);
            return;
        }
        char byte = (char)(high << 4 | low);
        mangled_put_bytes(name, &byte, 1);
    }
    mangled_put(name, "\"");
}

static void read_value(struct mangled_name *name, char type);

static void read_values(struct mangled_name *name)
{
    uint64_t count = mangled_decimal(name);
    for (uint64_t i = 0; i < count && !name->failed; i++) {
        mangled_put(name, i ? ", " : "");
        read_value(name, '\0');
    }
}

static void read_number(struct mangled_name *name, char type)
{
    uint64_t value = mangled_decimal(name);
    if (type == 'b')
        mangled_put(name, value ? "true" : "false");
    else if ((type == 'a' || type == 'u' || type == 'w') && value >= ' ' && value < 0x7f) {
        mangled_put(name, "'");
        mangled_put_character(name, (uint32_t)value);
        mangled_put(name, "'");
    } else
        mangled_put_number(name, value);
}

static void read_float(struct mangled_name *name)
{
    const char *first = name->at;
    while (isxdigit((unsigned char)mangled_peek(name)) || mangled_peek(name) == 'N' ||
           mangled_peek(name) == 'P' || mangled_peek(name) == 'I')
        name->at++;
    mangled_put(name, "0x");
    mangled_put_bytes(name, first, (size_t)(name->at - first));
}

/* A value; TYPE is the first letter of its type. */
static void read_value(struct mangled_name *name, char type)
{
    if (!mangled_enter(name))
        return;
    char tag = mangled_peek(name);
    if (!isdigit((unsigned char)tag))
        mangled_next(name);
    switch (tag) {
    case 'n':
        mangled_put(name, "null");
        break;
    case 'N':
        mangled_put(name, "-");
        read_number(name, type);
        break;
    case 'e':
        read_float(name);
        break;
    case 'a':
    case 'w':
    case 'd':
        read_string(name);
        break;
    case 'A':
        mangled_put(name, "[");
        read_values(name);
        mangled_put(name, "]");
        break;
    case 'S':
        mangled_put(name, "(");
        read_values(name);
        mangled_put(name, ")");
        break;
    default:
        read_number(name, type); /* "i" stands in front of it since 2.0 */
    }
    mangled_leave(name);
}

/* ---- Names ---- */

static void read_argument(struct mangled_name *name)
{
    mangled_take(name, 'H'); /* it is specialized */
    char tag = mangled_next(name), type = mangled_peek(name);
    switch (tag) {
    case 'T':
        read_type(name);
        break;
    case 'V':
        read_silently(name, read_type);
        read_value(name, type);
        break;
    case 'S':
        if (mangled_take_text(name, "_D"))
            read_whole(name);
        else
            read_qualified(name);
        break;
    case 'X': {
        uint64_t bytes = mangled_decimal(name);
        const char *text = mangled_part(name, bytes);
        mangled_put_bytes(name, text, text ? (size_t)bytes : 0);
        break;
    }
    default:
        mangled_fail(name);
    }
}

static void read_plain(struct mangled_name *name)
{
    static const struct {
        const char *name, *shown;
    } special[] = {{"__ctor", "this"}, {"__dtor", "~this"}, {"__postblit", "this(this)"}};
    uint64_t bytes = mangled_decimal(name);
    const char *text = mangled_part(name, bytes);
    for (size_t i = 0; text && i < sizeof special / sizeof *special; i++)
        if (bytes == strlen(special[i].name) && memcmp(text, special[i].name, bytes) == 0) {
            mangled_put(name, special[i].shown);
            return;
        }
    mangled_put_bytes(name, text, text ? (size_t)bytes : 0);
}

static void read_template(struct mangled_name *name);

static void read_symbol(struct mangled_name *name)
{
    const char *behind = NULL;
    if (!mangled_enter(name))
        return;
    if (mangled_peek(name) == 'Q') {
        const char *at = referred(name, name->at, &behind);
        if (!at)
            mangled_fail(name);
        else
            name->at = at;
    }
    if (mangled_take_text(name, "__T") || mangled_take_text(name, "__U"))
        read_template(name);
    else
        read_plain(name);
    if (behind && !name->failed)
        name->at = behind;
    mangled_leave(name);
}

/* "foo!(int, 3)", behind "__T". */
static void read_template(struct mangled_name *name)
{
    read_symbol(name);
    mangled_put(name, "!(");
    for (size_t i = 0; !name->failed && !mangled_take(name, 'Z'); i++) {
        mangled_put(name, i ? ", " : "");
        read_argument(name);
    }
    mangled_put(name, ")");
}

/* ---- Types ---- */

static const char *basic_type(char tag)
{
    static const char *const types['w' + 1] = {
        ['a'] = "char",   ['b'] = "bool",         ['c'] = "creal",  ['d'] = "double",
        ['e'] = "real",   ['f'] = "float",        ['g'] = "byte",   ['h'] = "ubyte",
        ['i'] = "int",    ['j'] = "ireal",        ['k'] = "uint",   ['l'] = "long",
        ['m'] = "ulong",  ['n'] = "typeof(null)", ['o'] = "ifloat", ['p'] = "idouble",
        ['q'] = "cfloat", ['r'] = "cdouble",      ['s'] = "short",  ['t'] = "ushort",
        ['u'] = "wchar",  ['v'] = "void",         ['w'] = "dchar"};
    return tag > 0 && tag <= 'w' ? types[(unsigned char)tag] : NULL;
}

static bool is_call_convention(char tag)
{
    return tag && strchr("FUWRVY", tag);
}

/* The attributes of a parameter or of "this". */
static void skip_modifiers(struct mangled_name *name)
{
    while (mangled_take(name, 'x') || mangled_take(name, 'y') || mangled_take(name, 'O') ||
           mangled_take_text(name, "Ng"))
        continue;
}

/* Attributes of a function: "Na" and others, but not those that begin a type or a parameter. */
static void skip_attributes(struct mangled_name *name)
{
    while (name->end - name->at >= 2 && name->at[0] == 'N' && strchr("abcdefijlm", name->at[1]))
        name->at += 2;
}

static void read_parameter(struct mangled_name *name)
{
    mangled_take(name, 'M');
    mangled_take_text(name, "Nk");
    mangled_take(name, 'M');
    mangled_put(name, mangled_take(name, 'I') ? "in " : "");
    mangled_put(name, mangled_take(name, 'J')   ? "out "
                      : mangled_take(name, 'K') ? "ref "
                      : mangled_take(name, 'L') ? "lazy "
                                                : "");
    read_type(name);
}

/* "(int, ref char)", with what stands in front of it; the result's type stays. */
static void read_parameters(struct mangled_name *name)
{
    if (!is_call_convention(mangled_next(name)))
        mangled_fail(name);
    skip_attributes(name);
    mangled_put(name, "(");
    for (size_t i = 0; !name->failed; i++) {
        char tag = mangled_peek(name);
        if (tag == 'X' || tag == 'Y' || tag == 'Z') {
            mangled_next(name);
            mangled_put(name, tag == 'X' ? "..." : tag == 'Y' ? ", ..." : "");
            break;
        }
        mangled_put(name, i ? ", " : "");
        read_parameter(name);
    }
    mangled_put(name, ")");
}

static void read_function(struct mangled_name *name, const char *word)
{
    mangled_put(name, word);
    read_parameters(name);
    read_silently(name, read_type);
}

/* "value[key]": the key stands first. */
static void read_map(struct mangled_name *name)
{
    const char *key = name->at;
    read_silently(name, read_type);
    read_type(name);
    const char *behind = name->at;
    if (name->failed)
        return;
    name->at = key;
    mangled_put(name, "[");
    read_type(name);
    mangled_put(name, "]");
    name->at = name->failed ? name->end : behind;
}

static void read_wrapped(struct mangled_name *name, const char *before, const char *behind)
{
    mangled_put(name, before);
    read_type(name);
    mangled_put(name, behind);
}

static void read_fixed_array(struct mangled_name *name)
{
    uint64_t count = mangled_decimal(name);
    read_type(name);
    mangled_put(name, "[");
    mangled_put_number(name, count);
    mangled_put(name, "]");
}

static void read_tuple(struct mangled_name *name)
{
    mangled_put(name, "tuple(");
    for (size_t i = 0; !name->failed && !mangled_take(name, 'Z'); i++) {
        mangled_put(name, i ? ", " : "");
        read_parameter(name);
    }
    mangled_put(name, ")");
}

/* Behind "Q": the type before that it refers to, which READ reads. */
static void read_again(struct mangled_name *name, void (*read)(struct mangled_name *name))
{
    const char *behind, *at = referred(name, name->at - 1, &behind);
    if (!at || !mangled_enter(name)) {
        mangled_fail(name);
        return;
    }
    name->at = at;
    read(name);
    name->at = name->failed ? name->end : behind;
    mangled_leave(name);
}

static void read_delegate(struct mangled_name *name)
{
    skip_modifiers(name);
    if (mangled_take(name, 'Q'))
        read_again(name, read_delegate);
    else
        read_function(name, "delegate");
}

static void read_marked_type(struct mangled_name *name)
{
    switch (mangled_next(name)) {
    case 'g':
        read_wrapped(name, "inout(", ")");
        break;
    case 'h':
        read_wrapped(name, "__vector(", ")");
        break;
    case 'n':
        mangled_put(name, "noreturn");
        break;
    default:
        mangled_fail(name);
    }
}

/* Types around another one.  Returns whether TAG is that of such a type. */
static bool read_type_around(struct mangled_name *name, char tag)
{
    switch (tag) {
    case 'x':
        read_wrapped(name, "const(", ")");
        return true;
    case 'y':
        read_wrapped(name, "immutable(", ")");
        return true;
    case 'O':
        read_wrapped(name, "shared(", ")");
        return true;
    case 'N':
        read_marked_type(name);
        return true;
    case 'A':
        read_wrapped(name, "", "[]");
        return true;
    case 'G':
        read_fixed_array(name);
        return true;
    case 'H':
        read_map(name);
        return true;
    case 'P':
        if (is_call_convention(mangled_peek(name)))
            read_function(name, "function");
        else
            read_wrapped(name, "", "*");
        return true;
    default:
        return false;
    }
}

static void read_other_type(struct mangled_name *name, char tag)
{
    if (tag && strchr("CSETI", tag))
        read_qualified(name);
    else if (tag == 'D')
        read_delegate(name);
    else if (tag == 'B')
        read_tuple(name);
    else if (tag == 'Q')
        read_again(name, read_type);
    else if (tag == 'z')
        mangled_put(name, mangled_next(name) == 'i' ? "cent" : "ucent");
    else if (is_call_convention(tag)) {
        name->at--;
        read_function(name, "function");
    } else
        mangled_fail(name);
}

static void read_type(struct mangled_name *name)
{
    if (!mangled_enter(name))
        return;
    char tag = mangled_next(name);
    const char *basic = basic_type(tag);
    if (basic)
        mangled_put(name, basic);
    else if (!read_type_around(name, tag))
        read_other_type(name, tag);
    mangled_leave(name);
}

/* ---- The whole ---- */

/* Pass the parameters of an outer function, if a name follows them. */
static void skip_outer_parameters(struct mangled_name *name)
{
    struct mangled_name saved = *name;
    if (mangled_take(name, 'M'))
        skip_modifiers(name);
    if (!is_call_convention(mangled_peek(name))) {
        *name = saved;
        return;
    }
    read_silently(name, read_parameters);
    if (!name->failed && begins_symbol(name))
        return;
    saved.steps = name->steps;
    *name = saved;
}

static void read_qualified(struct mangled_name *name)
{
    if (!mangled_enter(name))
        return;
    size_t before = name->bytes;
    do {
        mangled_take(name, '0'); /* a scope without a name */
        mangled_put(name, name->bytes > before ? "." : "");
        read_symbol(name);
        skip_outer_parameters(name);
    } while (!name->failed && begins_symbol(name));
    mangled_leave(name);
}

/* A symbol behind its "_D": the name, and its type, which is not shown. */
static void read_whole(struct mangled_name *name)
{
    if (!begins_symbol(name))
        mangled_fail(name);
    read_qualified(name);
    if (mangled_take(name, 'M'))
        skip_modifiers(name);
    if (!mangled_take(name, 'Z'))
        read_silently(name, read_type);
}

char *d_name(const char *symbol, size_t most)
{
    struct mangled_name name;
    mangled_begin(&name, symbol, strlen(symbol), most);
    if (strcmp(symbol, "_Dmain") == 0) {
        mangled_put(&name, "D main");
        return mangled_end(&name);
    }
    if (!mangled_take_text(&name, "_D"))
        mangled_fail(&name);
    read_whole(&name);
    if (mangled_peek(&name) && mangled_peek(&name) != '.')
        mangled_fail(&name);
    return mangled_end(&name);
}
