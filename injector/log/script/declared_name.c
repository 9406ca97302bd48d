/* See declared_name.h. */
#include "injector/log/script/declared_name.h"

#include "injector/log/script/script_word.h"

#include <string.h>

/* Words behind which parameters or an expression may stand, and that are no names here. */
static const char *const not_names[] = {
    "",       "await",   "case",   "catch", "constructor", "default", "do",    "else",
    "export", "extends", "for",    "if",    "in",          "new",     "of",    "return",
    "switch", "throw",   "typeof", "void",  "while",       "with",    "yield", NULL};

/* Append the ASCII WORD. */
static bool put(struct script_part word, char name[DECLARED_NAME_BYTES])
{
    size_t filled = strlen(name);
    if (word.to - word.from >= DECLARED_NAME_BYTES - filled)
        return false;
    for (size_t at = word.from; at < word.to; at++) {
        if (word.text->units[at] >= 0x80)
            return false;
        name[filled++] = (char)word.text->units[at];
    }
    name[filled] = '\0';
    return true;
}

static bool put_name(struct script_part word, char name[DECLARED_NAME_BYTES])
{
    name[0] = '\0';
    return !script_word_is_any(word, not_names) && put(word, name);
}

/* ---- Behind a name ---- */

/* Append "a.b" of "a.prototype.b" or "this.a.b", which CHAIN is. */
static bool put_chain(struct script_part chain, char name[DECLARED_NAME_BYTES])
{
    for (struct script_part word; chain.from < chain.to; chain.from = word.to + 1) {
        const size_t filled = strlen(name);
        word = script_word_at(chain.text, chain.from);
        if (script_word_is(word, "prototype") || script_word_is(word, "this"))
            continue;
        if (filled + 1 >= DECLARED_NAME_BYTES)
            return false;
        if (filled)
            memcpy(name + filled, ".", 2);
        if (!put(word, name))
            return false;
    }
    return *name;
}

/* Whether a "=" that assigns stands in front of AT. */
static bool is_assigned(const struct script_file *text, size_t at)
{
    return at && script_assigns(text, at - 1);
}

/* The identifiers with dots between that end at TO. */
static struct script_part chain_before(const struct script_file *text, size_t to)
{
    struct script_part chain = {text, to, to};
    while (chain.from && (script_unit_is_of_identifier(text->units[chain.from - 1]) ||
                          text->units[chain.from - 1] == '.'))
        chain.from--;
    return chain;
}

static bool has_dot(struct script_part chain)
{
    for (size_t at = chain.from; at < chain.to; at++)
        if (chain.text->units[at] == '.')
            return true;
    return false;
}

/* Whether a line ends between FROM and TO. */
static bool has_line_end(const struct script_file *text, size_t from, size_t to)
{
    while (from < to && !script_unit_is_one_of(text->units[from], "\r\n"))
        from++;
    return from < to;
}

/* Whether the line that ends at END has a comment up to its end. */
static bool ends_with_comment(const struct script_file *text, size_t end)
{
    for (size_t at = end; at > 1 && !script_unit_is_one_of(text->units[at - 1], "\r\n"); at--)
        if (text->units[at - 1] == '/' && text->units[at - 2] == '/')
            return true;
    return false;
}

/* Whether what is assigned to may begin at AT: behind nothing, a bracket, a keyword, a comment or
 * the end of a line.  Else it is the end of a type: "const a: typeof b =", "a: () => b =". */
static bool begins_target(const struct script_file *text, size_t at, const char *brackets)
{
    static const char *const words[] = {"const",   "let",      "var",       "static",   "readonly",
                                        "public",  "private",  "protected", "override", "abstract",
                                        "declare", "accessor", "else",      "do",       "return",
                                        "yield",   "await",    "case",      NULL};
    const size_t end = script_before_spaces(text, at);
    const unsigned unit = end ? text->units[end - 1] : ';';
    if (script_word_is_any(script_word_before(text, end), words) ||
        script_unit_is_one_of(unit, brackets))
        return true;
    if (unit == '/')
        return end > 1 && text->units[end - 2] == '*';
    return has_line_end(text, end, at) &&
           (!script_unit_is_one_of(unit, ":|&>?=,{([.") || ends_with_comment(text, end));
}

/* Where the "=" in front of AT begins, or "||=", "&&=", "??=". */
static size_t sign_before(const struct script_file *text, size_t at)
{
    return at > 2 && script_unit_is_one_of(text->units[at - 2], "|&?") ? at - 3 : at - 1;
}

/* What the "=" in front of AT assigns to: "NAME" or "a.NAME".  Nothing: a type, or more than a
 * name. */
static struct script_part assigned_to(const struct script_file *text, size_t at)
{
    const struct script_part chain =
        chain_before(text, script_before_spaces(text, sign_before(text, at)));
    if (chain.from < chain.to &&
        (text->units[chain.from] == '.' || !begins_target(text, chain.from, ";{}(,[=")))
        return (struct script_part){text, at, at};
    return chain;
}

/* How the unit in front of AT changes how deep the place is in brackets, towards the front.  The
 * ">" of "=>" is none. */
static int depth_change(const struct script_file *text, size_t at)
{
    const unsigned unit = text->units[at - 1];
    const bool is_arrow = unit == '>' && at > 1 && text->units[at - 2] == '=';
    return script_unit_is_one_of(unit, ")]}>") && !is_arrow ? 1
           : script_unit_is_one_of(unit, "([{<")            ? -1
                                                            : 0;
}

/* "NAME: TYPE =" in front of AT, of TypeScript. */
static struct script_part typed_target(const struct script_file *text, size_t at)
{
    enum { TYPE_UNITS_MOST = 1024 };
    const size_t begin = at > TYPE_UNITS_MOST ? at - TYPE_UNITS_MOST : 0;
    int depth = 0;
    for (size_t end = sign_before(text, at); end > begin && depth >= 0; end--) {
        const unsigned unit = text->units[end - 1];
        depth += depth_change(text, end);
        if (depth == 0 && (unit == ';' || script_assigns(text, end - 1)))
            break;
        if (depth != 0 || unit != ':')
            continue;
        size_t to = script_before_spaces(text, end - 1);
        if (to && script_unit_is_one_of(text->units[to - 1], "?!"))
            to = script_before_spaces(text, to - 1);
        const struct script_part word = script_word_before(text, to);
        if (word.from < word.to && begins_target(text, word.from, ";}("))
            return word;
    }
    return (struct script_part){text, at, at};
}

/* "NAME =" and "a.NAME =" in front of AT.  Of "a.NAME = b.NAME =" V8 has both, but not the
 * variables. */
static bool assigned_name(const struct script_file *text, size_t at, char name[DECLARED_NAME_BYTES])
{
    enum { CHAINS_MOST = 8 };
    struct script_part chains[CHAINS_MOST] = {assigned_to(text, at)};
    if (chains[0].from == chains[0].to)
        return put_name(typed_target(text, at), name);
    size_t count = 1;
    while (has_dot(chains[0]) && count < CHAINS_MOST &&
           is_assigned(text, at = script_before_spaces(text, chains[count - 1].from))) {
        chains[count] = assigned_to(text, at);
        if (chains[count].from == chains[count].to)
            break;
        count++;
    }
    name[0] = '\0';
    for (size_t i = count; i > 0; i--)
        if ((i == 1 || has_dot(chains[i - 1])) && !put_chain(chains[i - 1], name))
            return false;
    return *name;
}

/* The key that ends at END: a word, or what is in quotes. */
static struct script_part key_before(const struct script_file *text, size_t end)
{
    const unsigned quote = end ? text->units[end - 1] : 0;
    if (!script_unit_is_one_of(quote, "'\""))
        return script_word_before(text, end);
    for (size_t from = end - 1; from && text->units[from - 1] >= ' '; from--) {
        if (text->units[from - 1] == quote)
            return (struct script_part){text, from, end - 1};
        if (text->units[from - 1] == '\\')
            break;
    }
    return (struct script_part){text, end, end};
}

/* "NAME:" in front of AT, in an object. */
static bool key_name(const struct script_file *text, size_t at, char name[DECLARED_NAME_BYTES])
{
    const size_t end = script_before_spaces(text, at - 1);
    const struct script_part key = key_before(text, end);
    const size_t begin = key.from - (key.to < end); /* of the quotes */
    const size_t before = script_before_spaces(text, begin);
    name[0] = '\0';
    return key.from < key.to && before && script_unit_is_one_of(text->units[before - 1], "{,") &&
           put(key, name);
}

/* What the function without a name of its own that begins at AT is assigned to. */
static bool name_in_front(const struct script_file *text, size_t at, char name[DECLARED_NAME_BYTES])
{
    at = script_before_spaces(text, at);
    const struct script_part word = script_word_before(text, at);
    if (script_word_is(word, "async"))
        at = script_before_spaces(text, word.from);
    if (is_assigned(text, at))
        return assigned_name(text, at, name);
    return at && text->units[at - 1] == ':' && key_name(text, at, name);
}

/* ---- Around the place ---- */

/* In front of TypeScript's "<T>" that ends at END; else END. */
static size_t before_type_parameters(const struct script_file *text, size_t end)
{
    enum { PARAMETERS_UNITS_MOST = 256 };
    const size_t begin = end > PARAMETERS_UNITS_MOST ? end - PARAMETERS_UNITS_MOST : 0;
    int depth = 0;
    if (!end || text->units[end - 1] != '>' || !depth_change(text, end))
        return end;
    for (size_t at = end; at > begin; at--)
        if ((depth += depth_change(text, at)) <= 0)
            return script_before_spaces(text, at - 1);
    return end;
}

/* At the parameters: "NAME(", "function (" or an arrow function's. */
static bool name_of_parameters(const struct script_file *text, size_t at,
                               char name[DECLARED_NAME_BYTES])
{
    size_t end = before_type_parameters(text, script_before_spaces(text, at));
    if (end && text->units[end - 1] == '*')
        end = script_before_spaces(text, end - 1);
    const struct script_part word = script_word_before(text, end);
    if (script_word_is(word, "function"))
        return name_in_front(text, word.from, name);
    if (word.from == word.to || script_word_is(word, "async"))
        return name_in_front(text, end, name);
    return put_name(word, name);
}

/* At the only parameter of an arrow function in brackets, "(a: A) =>", which a minifier writes as
 * "a=>". */
static bool name_of_parameter(const struct script_file *text, size_t at,
                              char name[DECLARED_NAME_BYTES])
{
    const size_t open = script_before_spaces(text, at);
    if (!open || text->units[open - 1] != '(')
        return false;
    const size_t end = before_type_parameters(text, script_before_spaces(text, open - 1));
    const struct script_part word = script_word_before(text, end);
    return (word.from == word.to || script_word_is(word, "async")) &&
           name_in_front(text, end, name);
}

/* The name that the function or class at AT has of its own: behind "function*" or "class". */
static struct script_part own_name(const struct script_file *text, struct script_part word)
{
    size_t next = script_behind_spaces(text, word.to);
    if (script_unit(text, next) == '*')
        next = script_behind_spaces(text, next + 1);
    return script_word_at(text, next);
}

static struct script_part word_behind_async(const struct script_file *text, size_t at)
{
    const struct script_part word = script_word_at(text, at);
    return script_word_is(word, "async") ? script_word_at(text, script_behind_spaces(text, word.to))
                                         : word;
}

/* Whether what the "(" at AT opens begins with a function or a class: no parameters do. */
static bool has_function(const struct script_file *text, size_t at)
{
    static const char *const words[] = {"function", "class", NULL};
    const size_t inner = script_behind_spaces(text, at + 1);
    return script_unit(text, inner) == '(' ||
           script_word_is_any(word_behind_async(text, inner), words);
}

/* At the "(" of "(function NAME() {": terser's places are of the bracket.  Such a function is often
 * called at once, and what is assigned is another value. */
static bool name_in_brackets(const struct script_file *text, size_t at, bool is_named,
                             char name[DECLARED_NAME_BYTES])
{
    const size_t inner = script_behind_spaces(text, at + 1);
    return (script_unit(text, inner) != '(' &&
            put_name(own_name(text, word_behind_async(text, inner)), name)) ||
           (is_named && name_in_front(text, at, name));
}

bool declared_name(const struct script_file *text, uint32_t line, uint32_t column, bool is_named,
                   char name[DECLARED_NAME_BYTES])
{
    static const char *const modifiers[] = {"async", "static", "get", "set", NULL};
    if (line >= text->lines.count)
        return false;
    const size_t begin = text->lines.starts[line] + (size_t)column;
    if (script_unit(text, begin) == '(' && has_function(text, begin))
        return name_in_brackets(text, begin, is_named, name);
    if (script_unit_is_one_of(script_unit(text, begin), "(<"))
        return name_of_parameters(text, begin, name);
    struct script_part word = script_word_at(text, begin);
    size_t next = script_behind_spaces(text, word.to);
    while (script_word_is_any(word, modifiers) &&
           script_unit_is_of_identifier(script_unit(text, next))) {
        word = script_word_at(text, next);
        next = script_behind_spaces(text, word.to);
    }
    if (script_word_is(word, "function") || script_word_is(word, "class"))
        return put_name(own_name(text, word), name) || name_in_front(text, begin, name);
    if (word.from == word.to)
        return false;
    if (script_unit(text, next) == '=' && script_unit(text, next + 1) == '>')
        return name_in_front(text, begin, name);
    if (script_unit_is_one_of(script_unit(text, next), "):"))
        return name_of_parameter(text, begin, name);
    return is_named && script_unit_is_one_of(script_unit(text, next), "(<") && put_name(word, name);
}
