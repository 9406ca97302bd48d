/* See tier_mark.h. */
#include "injector/inject/layout/tier_mark.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The texts in front of V8's mark; older versions had others than JS. */
static const char *const v8_kinds[] = {"JS:", "LazyCompile:", "Function:", "Eval:", "Script:"};

/* V8's marks, in rising order. */
enum { FIRST_OPTIMIZED = 2, LONGEST_V8_MARK = 3 };
static const char v8_marks[] = "~^+*";
static const char *const v8_tiers[] = {"bytecode", "Sparkplug", "Maglev", "TurboFan"};

/* Two signs around the mark of optimized code, in newer versions.  The one in front: the code was
 * entered in the middle of a loop (on-stack replacement).  The one behind: the code is for one
 * closure alone. */
enum { V8_REPLACED = 'o', V8_SPECIALIZED = '\'' };

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

/* How many of the BYTES at TEXT are V8's mark; 0: they do not begin with one. */
static uint32_t v8_mark_bytes(const char *text, size_t bytes)
{
    uint32_t at = bytes > 1 && text[0] == V8_REPLACED;
    const char *tier = at < bytes ? memchr(v8_marks, text[at], COUNT(v8_tiers)) : NULL;
    bool optimized = tier && tier >= v8_marks + FIRST_OPTIMIZED;
    if (!tier || (at && !optimized))
        return 0;
    at++;
    return at + (optimized && at < bytes && text[at] == V8_SPECIALIZED);
}

static struct tier_mark v8_mark(const char *name, size_t bytes)
{
    for (size_t i = 0; i < COUNT(v8_kinds); i++) {
        size_t at = prefixed(name, bytes, v8_kinds[i]);
        uint32_t length = at ? v8_mark_bytes(name + at, bytes - at) : 0;
        if (length)
            return (struct tier_mark){(uint32_t)at, length};
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

bool tier_mark_is_v8(struct tier_mark mark)
{
    return mark.bytes && mark.bytes <= LONGEST_V8_MARK;
}

void tier_mark_text(const char *name, struct tier_mark mark, char text[TIER_TEXT_BYTES])
{
    const char *start = name + mark.at, *end = start + mark.bytes;
    if (tier_mark_is_v8(mark)) {
        bool replaced = *start == V8_REPLACED;
        const char *tier = memchr(v8_marks, start[replaced], COUNT(v8_tiers));
        snprintf(text, TIER_TEXT_BYTES, "%s%s", v8_tiers[tier - v8_marks], replaced ? " OSR" : "");
        return;
    }
    while (start < end && (*start == ' ' || *start == '['))
        start++;
    while (start < end && strchr("]: ", end[-1]))
        end--;
    snprintf(text, TIER_TEXT_BYTES, "%.*s", (int)(end - start), start);
}
