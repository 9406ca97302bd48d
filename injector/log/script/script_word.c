/* See script_word.h. */
#include "injector/log/script/script_word.h"

#include <string.h>

unsigned script_unit(const struct script_file *text, size_t at)
{
    return at < text->count ? text->units[at] : 0;
}

bool script_unit_is_one_of(unsigned unit, const char *ascii)
{
    return unit && unit < 0x80 && strchr(ascii, (int)unit);
}

static bool is_space(unsigned unit)
{
    return unit == ' ' || (unit >= '\t' && unit <= '\r');
}

size_t script_behind_spaces(const struct script_file *text, size_t at)
{
    while (is_space(script_unit(text, at)))
        at++;
    return at;
}

size_t script_before_spaces(const struct script_file *text, size_t at)
{
    while (at && is_space(text->units[at - 1]))
        at--;
    return at;
}

struct script_part script_word_at(const struct script_file *text, size_t at)
{
    struct script_part word = {text, at, at};
    while (script_unit_is_of_identifier(script_unit(text, word.to)))
        word.to++;
    return word;
}

struct script_part script_word_before(const struct script_file *text, size_t at)
{
    struct script_part word = {text, at, at};
    while (word.from && script_unit_is_of_identifier(text->units[word.from - 1]))
        word.from--;
    return word;
}

bool script_word_is_of(struct script_part word, const char *wanted, size_t bytes)
{
    if (word.to - word.from != bytes)
        return false;
    for (size_t i = 0; i < bytes; i++)
        if (word.text->units[word.from + i] != (unsigned char)wanted[i])
            return false;
    return true;
}

bool script_word_is(struct script_part word, const char *wanted)
{
    return script_word_is_of(word, wanted, strlen(wanted));
}

bool script_word_is_any(struct script_part word, const char *const *wanted)
{
    for (; *wanted; wanted++)
        if (script_word_is(word, *wanted))
            return true;
    return false;
}

bool script_assigns(const struct script_file *text, size_t at)
{
    const unsigned before = at ? text->units[at - 1] : 0;
    const unsigned after = script_unit(text, at + 1);
    if (script_unit(text, at) != '=' || after == '=' || after == '>')
        return false;
    if (before == '|' || before == '&' || before == '?')
        return at > 1 && text->units[at - 2] == before;
    return before >= 0x80 || !before || !strchr("=!<>+-*/%^", (int)before);
}
