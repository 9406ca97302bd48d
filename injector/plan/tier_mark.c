/* See tier_mark.h. */
#include "injector/plan/tier_mark.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* What stands in front of V8's mark, of one character; older versions had others than JS. */
static const char *const v8_kinds[] = {"JS:", "LazyCompile:", "Function:", "Eval:", "Script:"};

/* What the marks mean. */
static const char v8_marks[] = "~^+*";
static const char *const v8_tiers[] = {"bytecode", "Sparkplug", "Maglev", "TurboFan"};

/* Marks in front of a name. */
static const char *const prefixes[] = {
    "JSC-LLInt: ", "JSC-Baseline: ", "JSC-DFG: ",     "JSC-FTL: ",
    "Ion: ",       "Baseline: ",     "Interpreter: ", "BaselineInterpreter: ",
};

/* How the marks begin that stand in brackets after a name; digits and more of the word follow. */
static const char *const bracketed[] = {"tier",        "Tier",         "Optimized",   "PreJIT",
                                        "QuickJitted", "MinOptJitted", "Instrumented"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The length of PREFIX if NAME begins with it, else 0. */
static size_t prefixed(const char *name, size_t bytes, const char *prefix)
{
    size_t length = strlen(prefix);
    return bytes >= length && memcmp(name, prefix, length) == 0 ? length : 0;
}

static struct tier_mark v8_mark(const char *name, size_t bytes)
{
    for (size_t i = 0; i < COUNT(v8_kinds); i++) {
        size_t at = prefixed(name, bytes, v8_kinds[i]);
        if (at && at < bytes && memchr(v8_marks, name[at], COUNT(v8_tiers)))
            return (struct tier_mark){(uint32_t)at, 1};
    }
    return (struct tier_mark){0, 0};
}

static bool is_word(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (!isalnum((unsigned char)text[i]))
            return false;
    return true;
}

static bool is_bracketed_tier(const char *text, size_t bytes)
{
    for (size_t i = 0; i < COUNT(bracketed); i++)
        if (prefixed(text, bytes, bracketed[i]))
            return is_word(text, bytes);
    return false;
}

/* A mark after the name takes the space in front of it along. */
static struct tier_mark bracketed_mark(const char *name, size_t bytes)
{
    const char *open = bytes && name[bytes - 1] == ']' ? memrchr(name, '[', bytes) : NULL;
    if (!open || !is_bracketed_tier(open + 1, (size_t)(name + bytes - 1 - (open + 1))))
        return (struct tier_mark){0, 0};
    const char *start = open > name && open[-1] == ' ' ? open - 1 : open;
    if (start == name)
        return (struct tier_mark){0, 0};
    return (struct tier_mark){(uint32_t)(start - name), (uint32_t)(name + bytes - start)};
}

struct tier_mark tier_mark_of(const char *name, size_t bytes)
{
    struct tier_mark mark = v8_mark(name, bytes);
    for (size_t i = 0; !mark.bytes && i < COUNT(prefixes); i++)
        mark.bytes = (uint32_t)prefixed(name, bytes, prefixes[i]);
    return mark.bytes ? mark : bracketed_mark(name, bytes);
}

void tier_mark_text(const char *name, struct tier_mark mark, char text[TIER_TEXT_BYTES])
{
    const char *start = name + mark.at, *end = start + mark.bytes;
    const char *v8 = mark.bytes == 1 ? memchr(v8_marks, *start, COUNT(v8_tiers)) : NULL;
    if (v8) {
        snprintf(text, TIER_TEXT_BYTES, "%s", v8_tiers[v8 - v8_marks]);
        return;
    }
    while (start < end && (*start == ' ' || *start == '['))
        start++;
    while (start < end && strchr("]: ", end[-1]))
        end--;
    snprintf(text, TIER_TEXT_BYTES, "%.*s", (int)(end - start), start);
}
