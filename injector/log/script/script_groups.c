/* See script_groups.h. */
#include "injector/log/script/script_groups.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/log/script/script_word.h"

/* Nesting that no program has: more is not looked through, so that the time stays in proportion. */
enum { DEPTH_MOST = 1000 };

struct search {
    struct script_groups *groups;
    const struct script_file *text;
    size_t at;     /* up to where the text is read */
    size_t before; /* behind the last unit of code that was read; 0: none */
    uint32_t open; /* the innermost group that is open */
};

static int begin_group(struct search *search, size_t at)
{
    struct script_groups *groups = search->groups;
    if (array_reserve(groups->items, groups->count, groups->capacity))
        return -1;
    groups->items[groups->count] = (struct script_group){(uint32_t)at, UINT32_MAX, search->open};
    search->open = (uint32_t)groups->count++;
    return 0;
}

static void end_group(struct search *search, size_t at)
{
    struct script_group *group = &search->groups->items[search->open];
    group->close = (uint32_t)at;
    search->open = group->outer;
}

/* A group without groups in it, up to END. */
static int add_group(struct search *search, size_t end)
{
    if (begin_group(search, search->at))
        return -1;
    search->at = end < search->text->count ? end + 1 : search->text->count;
    end_group(search, search->at - 1);
    return 0;
}

static bool ends_line(unsigned unit)
{
    return unit == '\n' || unit == '\r' || unit == 0x2028 || unit == 0x2029;
}

static size_t line_end(const struct script_file *text, size_t at)
{
    while (at < text->count && !ends_line(text->units[at]))
        at++;
    return at;
}

/* ---- Strings, comments, regular expressions ---- */

/* The last unit of the string that begins at AT. */
static size_t string_end(const struct script_file *text, size_t at)
{
    const unsigned quote = text->units[at];
    for (at++; at < text->count && text->units[at] != quote && !ends_line(text->units[at]); at++)
        at += text->units[at] == '\\';
    return at;
}

static size_t comment_end(const struct script_file *text, size_t at)
{
    for (at += 2; at < text->count; at++)
        if (text->units[at] == '*' && script_unit(text, at + 1) == '/')
            return at + 1;
    return at;
}

/* The last unit of the regular expression that begins at AT; 0: it is none, its line ends before.
 */
static size_t expression_end(const struct script_file *text, size_t at)
{
    bool is_class = false;
    for (at++; at < text->count && !ends_line(text->units[at]); at++) {
        const unsigned unit = text->units[at];
        if (unit == '/' && !is_class)
            return at;
        is_class = unit == '[' || (is_class && unit != ']');
        at += unit == '\\';
    }
    return 0;
}

/* The group that closes right in front of END; or NULL. */
static const struct script_group *closed_before(const struct search *search, size_t end)
{
    const uint32_t found = script_group_before(search->groups, search->open, end);
    const struct script_group *group =
        found == SCRIPT_GROUP_NONE ? NULL : &search->groups->items[found];
    return group && group->close + (size_t)1 == end ? group : NULL;
}

/* Whether the "{" at OPEN begins statements, and no object. */
static bool begins_block(const struct script_file *text, size_t open)
{
    static const char *const words[] = {"else", "do", "try", "finally", NULL};
    const size_t end = script_before_spaces(text, open);
    return !end || script_unit_is_one_of(text->units[end - 1], ");{}>") ||
           script_word_is_any(script_word_before(text, end), words);
}

/* Whether an expression begins behind what was read: a "/" there divides nothing. */
static bool begins_expression(const struct search *search)
{
    static const char *const words[] = {"return", "typeof", "case",  "in",    "of",
                                        "delete", "void",   "throw", "new",   "instanceof",
                                        "do",     "else",   "yield", "await", NULL};
    static const char *const heads[] = {"if", "while", "for", "with", NULL};
    const struct script_file *text = search->text;
    const size_t end = search->before;
    const unsigned unit = end ? text->units[end - 1] : 0;
    if (script_unit_is_of_identifier(unit))
        return script_word_is_any(script_word_before(text, end), words);
    if (unit == '+' || unit == '-')
        return end < 2 || text->units[end - 2] != unit;
    if (!script_unit_is_one_of(unit, ")]}'\"`/"))
        return true;
    const struct script_group *group = closed_before(search, end);
    if (unit == ')' && group)
        return script_word_is_any(script_word_before(text, script_before_spaces(text, group->open)),
                                  heads);
    return unit == '}' && group && begins_block(text, group->open);
}

/* A "/": of a comment, of a regular expression, or between two numbers. */
static int read_slash(struct search *search)
{
    const unsigned next = script_unit(search->text, search->at + 1);
    if (next == '/')
        return add_group(search, line_end(search->text, search->at) - 1);
    if (next == '*')
        return add_group(search, comment_end(search->text, search->at));
    const size_t end = begins_expression(search) ? expression_end(search->text, search->at) : 0;
    const int result = end ? add_group(search, end) : 0;
    search->at += end ? 0 : 1;
    search->before = search->at;
    return result;
}

/* ---- Brackets and templates ---- */

/* The text of a template at the next unit: up to its end, or to code in it. */
static int read_template(struct search *search)
{
    const struct script_file *text = search->text;
    for (; search->at < text->count; search->at++) {
        const unsigned unit = text->units[search->at];
        if (unit == '`') {
            end_group(search, search->at++);
            search->before = search->at;
            return 0;
        }
        if (unit == '$' && script_unit(text, search->at + 1) == '{') {
            search->at += 2;
            search->before = search->at;
            return begin_group(search, search->at - 1);
        }
        search->at += unit == '\\';
    }
    return 0;
}

static unsigned partner_of(unsigned close)
{
    return close == ')' ? '(' : close == ']' ? '[' : '{';
}

/* A closing bracket: it ends the innermost group that it can end, and those in it. */
static int read_close(struct search *search)
{
    const struct script_group *items = search->groups->items;
    const uint16_t *units = search->text->units;
    const unsigned wanted = partner_of(units[search->at]);
    uint32_t found = search->open;
    for (int i = 0; found != SCRIPT_GROUP_NONE && units[items[found].open] != wanted; i++)
        found = units[items[found].open] == '`' || i == DEPTH_MOST ? SCRIPT_GROUP_NONE
                                                                   : items[found].outer;
    while (found != SCRIPT_GROUP_NONE && search->open != found)
        end_group(search, search->at);
    if (found != SCRIPT_GROUP_NONE)
        end_group(search, search->at);
    search->before = ++search->at;
    return search->open != SCRIPT_GROUP_NONE && units[items[search->open].open] == '`'
               ? read_template(search)
               : 0;
}

static int read_unit(struct search *search)
{
    const unsigned unit = search->text->units[search->at];
    int result = 0;
    switch (unit) {
    case '/':
        return read_slash(search);
    case ')':
    case ']':
    case '}':
        return read_close(search);
    case '`':
        result = begin_group(search, search->at++);
        return result ? result : read_template(search);
    case '"':
    case '\'':
        result = add_group(search, string_end(search->text, search->at));
        break;
    case '(':
    case '[':
    case '{':
        result = begin_group(search, search->at++);
        break;
    default:
        search->at++;
        if (script_before_spaces(search->text, search->at) < search->at)
            return 0;
    }
    search->before = search->at;
    return result;
}

int script_groups_find(struct script_groups *groups, const struct script_file *text)
{
    struct search search = {groups, text, 0, 0, SCRIPT_GROUP_NONE};
    *groups = (struct script_groups){0};
    if (script_unit(text, 0) == '#' && script_unit(text, 1) == '!')
        search.at = line_end(text, 0);
    while (search.at < text->count)
        if (read_unit(&search))
            return -1;
    while (search.open != SCRIPT_GROUP_NONE)
        end_group(&search, text->count - 1);
    return 0;
}

/* ---- Which one ---- */

/* The last group that begins before AT. */
static uint32_t last_before(const struct script_groups *groups, size_t at)
{
    size_t behind;
    array_bisect(behind, groups->count, groups->items[behind].open < at);
    return behind ? (uint32_t)(behind - 1) : SCRIPT_GROUP_NONE;
}

uint32_t script_group_around(const struct script_groups *groups, size_t at)
{
    uint32_t found = last_before(groups, at);
    for (int i = 0; found != SCRIPT_GROUP_NONE && groups->items[found].close < at; i++)
        found = i < DEPTH_MOST ? groups->items[found].outer : SCRIPT_GROUP_NONE;
    return found;
}

uint32_t script_group_before(const struct script_groups *groups, uint32_t outer, size_t at)
{
    uint32_t found = last_before(groups, at);
    for (int i = 0; found != SCRIPT_GROUP_NONE && groups->items[found].outer != outer; i++)
        found = found != outer && i < DEPTH_MOST ? groups->items[found].outer : SCRIPT_GROUP_NONE;
    return found;
}

void script_groups_free(struct script_groups *groups)
{
    free(groups->items);
    *groups = (struct script_groups){0};
}
