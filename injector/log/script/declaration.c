/* See declaration.h. */
#include "injector/log/script/declaration.h"

#include "injector/log/script/script_word.h"

enum { STEPS_MOST = 8192 }; /* units that are looked at, those in groups aside */

static size_t group_begin(const struct declaration_search *search)
{
    return search->group == SCRIPT_GROUP_NONE ? 0 : search->groups->items[search->group].open;
}

/* Go on in front of the group around. */
static void leave_group(struct declaration_search *search)
{
    search->at = group_begin(search);
    search->group = search->groups->items[search->group].outer;
}

void declaration_begin(struct declaration_search *search, const struct script_file *text,
                       const struct script_groups *groups, size_t function, const char *identifier,
                       size_t bytes)
{
    *search =
        (struct declaration_search){text, groups, identifier, bytes, function, function, 0, 0};
    search->group = script_group_around(groups, function);
    const size_t end = script_before_spaces(text, function < text->count ? function : text->count);
    const struct script_part word = script_word_before(text, end);
    if (script_word_is(word, "constructor") && !script_word_is_of(word, identifier, bytes) &&
        search->group != SCRIPT_GROUP_NONE)
        leave_group(search); /* the class is in front of its fields and methods */
}

/* Whether what is assigned to follows AT: ".a", "[b]", and "=" at last. */
static bool is_assigned_to(struct declaration_search *search, size_t at)
{
    const struct script_file *text = search->text;
    uint32_t group;
    for (at = script_behind_spaces(text, at); search->steps < STEPS_MOST; search->steps++) {
        if (script_unit(text, at) == '.')
            at = script_word_at(text, at + 1).to;
        else if (script_unit(text, at) == '[' &&
                 (group = script_group_around(search->groups, at + 1)) != SCRIPT_GROUP_NONE)
            at = search->groups->items[group].close + (size_t)1;
        else
            break;
        at = script_behind_spaces(text, at);
    }
    const unsigned unit = script_unit(text, at);
    const size_t sign = unit == '|' || unit == '&' || unit == '?' ? at + 2 : at;
    return script_assigns(text, sign);
}

/* Whether the function itself stands at AT: "async function*(n) {", "n => n". */
static bool is_function(const struct declaration_search *search, size_t at)
{
    static const char *const words[] = {"async", "function", NULL};
    const struct script_file *text = search->text;
    at = script_behind_spaces(text, at);
    for (struct script_part word; at < search->function; at = script_behind_spaces(text, word.to)) {
        word = script_word_at(text, at);
        if (script_unit(text, at) == '*')
            word.to++;
        else if (!script_word_is_any(word, words))
            return false;
    }
    return at == search->function;
}

/* Whether the function is the value of the key that ends at AT, or the method of that name. */
static bool is_own_key(const struct declaration_search *search, size_t at)
{
    return at == search->function ||
           (script_unit(search->text, at) == ':' && is_function(search, at + 1));
}

static bool declares(struct declaration_search *search, struct script_part word,
                     struct declaration *declaration)
{
    static const char *const words[] = {"function", "class", NULL};
    const struct script_file *text = search->text;
    const size_t next = script_behind_spaces(text, word.to);
    size_t end = script_before_spaces(text, word.from);
    if (end && text->units[end - 1] == '*')
        end = script_before_spaces(text, end - 1);
    const bool is_key = script_unit(text, next) == ':', is_own = is_own_key(search, next);
    *declaration = (struct declaration){word.from, is_key && !is_own};
    return is_key || is_own || is_assigned_to(search, next) ||
           script_word_is_any(script_word_before(text, end), words);
}

/* "'a.t': function", whose key ends with the GROUP: all of the name stands there. */
static bool is_quoted_key(const struct declaration_search *search, const struct script_group *group,
                          struct declaration *declaration)
{
    const unsigned quote = search->text->units[group->open];
    *declaration = (struct declaration){group->open, false};
    return (quote == '"' || quote == '\'') &&
           is_own_key(search, script_behind_spaces(search->text, group->close + (size_t)1));
}

/* The "t" of "class t", which the function is. */
static bool is_class(struct declaration_search *search, struct declaration *declaration)
{
    const struct script_part word = script_word_at(search->text, search->function);
    const struct script_part name =
        script_word_at(search->text, script_behind_spaces(search->text, word.to));
    *declaration = (struct declaration){name.from, false};
    return !search->steps++ && script_word_is(word, "class") &&
           script_word_is_of(name, search->identifier, search->bytes);
}

/* Where the group directly in the one around ends that is the next to the front. */
static size_t next_group_end(const struct declaration_search *search, uint32_t *group)
{
    *group = script_group_before(search->groups, search->group, search->at);
    return *group == SCRIPT_GROUP_NONE ? group_begin(search)
                                       : search->groups->items[*group].close + (size_t)1;
}

/* Look through the units down to END. */
static bool look_down_to(struct declaration_search *search, size_t end,
                         struct declaration *declaration)
{
    while (search->at > end && search->steps++ < STEPS_MOST) {
        const struct script_part word = script_word_before(search->text, search->at);
        search->at = word.from < search->at ? word.from : search->at - 1;
        if (word.from < word.to && script_word_is_of(word, search->identifier, search->bytes) &&
            declares(search, word, declaration))
            return true;
    }
    return false;
}

bool declaration_next(struct declaration_search *search, struct declaration *declaration)
{
    uint32_t group;
    if (search->function >= search->text->count)
        return false;
    if (is_class(search, declaration))
        return true;
    while (search->steps++ < STEPS_MOST) {
        if (look_down_to(search, next_group_end(search, &group), declaration))
            return true;
        if (group != SCRIPT_GROUP_NONE) {
            search->at = search->groups->items[group].open;
            if (is_quoted_key(search, &search->groups->items[group], declaration))
                return true;
        } else if (search->group != SCRIPT_GROUP_NONE)
            leave_group(search);
        else
            return false;
    }
    return false;
}
