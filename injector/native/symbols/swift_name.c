/* Swift, since 5.0: https://github.com/swiftlang/swift/blob/main/docs/ABI/Mangling.rst.  Operands
 * stand in front of their operators.  A function's name is the module, the types around it, its own
 * name, the labels and types of its parameters, and what it is ("F").  Here the front is read up to
 * the function's name, and then the end; in between types may stand. */
#include "injector/native/symbols/mangled_name.h"
#include "injector/native/symbols/other_names.h"
#include "injector/text/affix.h"

#include <ctype.h>
#include <string.h>

enum { MOST_WORDS = 26, MOST_IDENTIFIER = 512 };

/* The words of the identifiers so far, which later ones may refer to. */
struct words {
    const char *text[MOST_WORDS];
    size_t bytes[MOST_WORDS];
    size_t count;
};

/* What was read. */
struct swift_reading {
    struct mangled_name *name;
    struct words words;
    char own[MOST_IDENTIFIER]; /* the function's identifier */
    size_t own_bytes;
};

/* ---- Identifiers ---- */

static bool starts_word(char c)
{
    return !isdigit((unsigned char)c) && c != '_' && c != '\0';
}

static bool ends_word(char c, char before)
{
    return c == '_' || c == '\0' || (!isupper((unsigned char)before) && isupper((unsigned char)c));
}

/* Note the words of the BYTES at TEXT. */
static void note_words(struct words *words, const char *text, size_t bytes)
{
    const char *start = NULL;
    for (const char *at = text; at <= text + bytes; at++) {
        char c = at < text + bytes ? *at : '\0';
        if (start && ends_word(c, at[-1])) {
            if (at - start >= 2 && words->count < MOST_WORDS) {
                words->text[words->count] = start;
                words->bytes[words->count++] = (size_t)(at - start);
            }
            start = NULL;
        }
        if (!start && starts_word(c))
            start = at;
    }
}

static void add(struct swift_reading *reading, const char *text, size_t bytes)
{
    if (!text || bytes > MOST_IDENTIFIER - reading->own_bytes) {
        mangled_fail(reading->name);
        return;
    }
    memcpy(reading->own + reading->own_bytes, text, bytes);
    reading->own_bytes += bytes;
}

static void read_text(struct swift_reading *reading)
{
    uint64_t bytes = mangled_decimal(reading->name);
    const char *text = mangled_part(reading->name, bytes);
    add(reading, text, text ? (size_t)bytes : 0);
    if (!reading->name->failed)
        note_words(&reading->words, text, (size_t)bytes);
}

/* A word before, by its letter.  Returns whether it is the last one: a capital. */
static bool read_word(struct swift_reading *reading)
{
    char letter = mangled_next(reading->name);
    bool is_last = isupper((unsigned char)letter);
    size_t number = (size_t)(is_last ? letter - 'A' : letter - 'a');
    if (number < reading->words.count)
        add(reading, reading->words.text[number], reading->words.bytes[number]);
    else
        mangled_fail(reading->name);
    return is_last;
}

/* "3foo"; or "0" with words and texts in turns, up to the last word or "0". */
static void read_identifier(struct swift_reading *reading)
{
    struct mangled_name *name = reading->name;
    reading->own_bytes = 0;
    if (mangled_take_text(name, "00"))
        mangled_fail(name); /* punycode */
    bool has_words = mangled_take(name, '0');
    do {
        while (has_words && isalpha((unsigned char)mangled_peek(name)))
            has_words = !read_word(reading);
        if (mangled_take(name, '0'))
            return;
        read_text(reading);
    } while (has_words && !name->failed);
}

/* The letters of an operator's identifier, which "oi", "op" or "oP" follows. */
static void take_operator(struct swift_reading *reading)
{
    static const char letters[] = "acdeglmnopqrstxz", signs[] = "&@/=><*!|+?%-~^.";
    struct mangled_name *name = reading->name;
    if (!mangled_take_text(name, "oi") && !mangled_take_text(name, "op") &&
        !mangled_take_text(name, "oP"))
        return;
    for (size_t i = 0; i < reading->own_bytes; i++) {
        const char *letter = strchr(letters, reading->own[i]);
        if (letter && *letter)
            reading->own[i] = signs[letter - letters];
    }
}

static void put_own(struct swift_reading *reading)
{
    mangled_put(reading->name, reading->name->bytes ? "." : "");
    mangled_put_bytes(reading->name, reading->own, reading->own_bytes);
    reading->own_bytes = 0;
}

/* ---- The front ---- */

/* A type of the standard library that has a letter. */
static const char *known_type(char letter)
{
    static const char *const types['z' + 1] = {
        ['a'] = "Array",    ['b'] = "Bool",   ['D'] = "Dictionary", ['d'] = "Double",
        ['f'] = "Float",    ['h'] = "Set",    ['i'] = "Int",        ['J'] = "Character",
        ['q'] = "Optional", ['S'] = "String", ['s'] = "Substring",  ['u'] = "UInt"};
    return letter > 0 && letter <= 'z' ? types[(unsigned char)letter] : NULL;
}

static void read_module(struct swift_reading *reading)
{
    struct mangled_name *name = reading->name;
    if (mangled_take(name, 's')) {
        mangled_put(name, "Swift");
        return;
    }
    if (mangled_take(name, 'S')) {
        const char *type = known_type(mangled_next(name));
        if (!type)
            mangled_fail(name);
        mangled_put(name, "Swift.");
        mangled_put(name, type ? type : "");
        return;
    }
    read_identifier(reading);
    put_own(reading);
}

/* Types, up to the first identifier that is none: that stays in OWN.  A type may be extended in
 * another module, or in its own ("AA"). */
static void read_types(struct swift_reading *reading)
{
    struct mangled_name *name = reading->name;
    while ((mangled_take_text(name, "AAE") || isdigit((unsigned char)mangled_peek(name))) &&
           mangled_enter(name)) {
        read_identifier(reading);
        mangled_leave(name);
        char tag = mangled_peek(name);
        if (tag == 'E') {
            mangled_next(name);
            reading->own_bytes = 0;
        } else if (tag && strchr("CVOP", tag)) {
            mangled_next(name);
            put_own(reading);
        } else {
            take_operator(reading);
            return;
        }
    }
}

/* ---- The end ---- */

/* The place of the last "T" of the BYTES at TEXT that begins what was made of a function, behind
 * its begin: "TA", a partial application, "TY0_", where it goes on after an await, "Tg5" and
 * "Tf4n_n", specialized.  0: there is none. */
static size_t thunk_at(const char *text, size_t bytes)
{
    for (size_t at = bytes; at-- > 1 && bytes - at < 64;)
        if (text[at] == 'T' && at + 1 < bytes && strchr("AaWojqmuQYgGBf", text[at + 1]))
            return strspn(text + at + 2, "0123456789abcdefghijklmnopqrstuvwxyz_") >= bytes - at - 2
                       ? at
                       : 0;
    return 0;
}

/* Take off what was made of the function, the types that it was made for, and "Z": it is static. */
static void drop_thunks(const char *text, size_t *bytes)
{
    for (size_t at; (at = thunk_at(text, *bytes));) {
        *bytes = at;
        if (text[at + 1] != 'g' && text[at + 1] != 'G' && text[at + 1] != 'B')
            continue;
        while (at && text[at - 1] != 'F')
            at--;
        *bytes = at;
    }
    if (*bytes && text[*bytes - 1] == 'Z')
        --*bytes;
}

/* What a function at the end of the BYTES at REST is, in words behind its name; NULL: not known. */
static const char *kind_of(const char *rest, size_t bytes, bool *has_name)
{
    static const struct {
        const char *end, *words;
        bool has_name;
    } kinds[] = {{"F", "", true},          {"vg", ".getter", true}, {"vs", ".setter", true},
                 {"vM", ".modify", true},  {"vr", ".read", true},   {"vw", ".willset", true},
                 {"vW", ".didset", true},  {"fC", ".init", false},  {"fc", ".init", false},
                 {"fD", ".deinit", false}, {"fd", ".deinit", false}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (text_ends(rest, bytes, kinds[i].end)) {
            *has_name = kinds[i].has_name;
            return kinds[i].words;
        }
    return NULL;
}

/* A closure ends in "U_", the second in "U0_": its number from 1 on; 0: it is none.  *BYTES are
 * then those of the function around it. */
static unsigned closure_number(const char *rest, size_t *bytes)
{
    size_t at = *bytes;
    unsigned number = 0, digit = 1;
    if (!text_ends(rest, at, "_"))
        return 0;
    at--;
    bool is_first = at && rest[at - 1] == 'U';
    for (; at && isdigit((unsigned char)rest[at - 1]) && digit <= 1000; at--, digit *= 10)
        number += digit * (unsigned)(rest[at - 1] - '0');
    if (at < 2 || rest[at - 1] != 'U' || rest[at - 2] != 'f')
        return 0;
    /* The type of the closure stands behind the function: its last "F" or accessor. */
    for (at -= 2; at && rest[at - 1] != 'F'; at--)
        continue;
    *bytes = at;
    return is_first ? 1 : number + 2;
}

static void read_end(struct swift_reading *reading)
{
    struct mangled_name *name = reading->name;
    const char *rest = name->at;
    size_t bytes = 0;
    bool has_name;
    while (rest + bytes < name->end && (isalnum((unsigned char)rest[bytes]) || rest[bytes] == '_'))
        bytes++;
    if (rest + bytes < name->end && rest[bytes] != '.')
        mangled_fail(name);
    drop_thunks(rest, &bytes);
    unsigned closure = closure_number(rest, &bytes);
    const char *kind = kind_of(rest, bytes, &has_name);
    if (name->failed || !kind || (has_name && !reading->own_bytes) || (closure && !has_name)) {
        mangled_fail(name);
        return;
    }
    if (has_name)
        put_own(reading);
    mangled_put(name, kind);
    if (closure) {
        mangled_put(name, ".{closure #");
        mangled_put_number(name, closure);
        mangled_put(name, "}");
    }
}

char *swift_name(const char *symbol, size_t most)
{
    struct mangled_name name;
    mangled_begin(&name, symbol, strlen(symbol), most);
    struct swift_reading reading = {.name = &name};
    mangled_take(&name, '_');
    if (!mangled_take_text(&name, "$s") && !mangled_take_text(&name, "$S"))
        mangled_fail(&name);
    read_module(&reading);
    read_types(&reading);
    read_end(&reading);
    return mangled_end(&name);
}
