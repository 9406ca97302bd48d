/* See tier_mark.h. */
#include "injector/log/code/tier_mark.h"

#include "injector/text/affix.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The texts in front of V8's mark; older versions had others than JS. */
static const char *const v8_kinds[] = {"JS:", "LazyCompile:", "Function:", "Eval:", "Script:"};

/* V8's marks, in rising order. */
enum { FIRST_OPTIMIZED = 2 };
static const char v8_marks[] = "~^+*";
static const char *const v8_tiers[] = {"bytecode", "Sparkplug", "Maglev", "TurboFan"};

/* How V8's names of WebAssembly end, behind the function's number. */
static const struct {
    const char *end, *text;
} v8_wasm[] = {{"-liftoff", "Liftoff"}, {"-turbofan", "TurboFan"}};

/* Two signs around the mark of optimized code, in newer versions.  The one in front: the code was
 * entered in the middle of a loop (on-stack replacement).  The one behind: the code is for one
 * closure alone. */
enum { V8_REPLACED = 'o', V8_SPECIALIZED = '\'' };

/* Marks in front of a name.  Older versions of JavaScriptCore left "JSC-" out. */
static const char *const prefixes[] = {
    "JSC-LLInt: ",   "JSC-Baseline: ", "JSC-DFG: ",  "JSC-FTL: ",     "JSC-WasmIPInt: ",
    "JSC-WasmBBQ: ", "JSC-WasmOMG: ",  "DFG: ",      "FTL: ",         "WasmBBQ: ",
    "WasmOMG: ",     "Ion: ",          "Baseline: ", "Interpreter: ", "BaselineInterpreter: ",
};

/* The tiers in which no code was compiled. */
static const char *const interpreters[] = {"bytecode",    "JSC-LLInt",           "JSC-WasmIPInt",
                                           "Interpreter", "BaselineInterpreter", "interpreted"};

/* How the marks begin that stand in brackets after a name; digits and more of the word follow. */
static const char *const bracketed[] = {"tier",         "Tier",        "Optimized",
                                        "PreJIT",       "QuickJitted", "MinOptJitted",
                                        "Instrumented", "interpreted"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The length of that of COUNT TEXTS, none of which begins with another, with which NAME begins; 0:
 * with none. */
static size_t begin_bytes(const char *name, size_t bytes, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (text_begins(name, bytes, texts[i]))
            return strlen(texts[i]);
    return 0;
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

/* The length of V8's text in front of a name; 0: there is none. */
static size_t v8_kind_bytes(const char *name, size_t bytes)
{
    return begin_bytes(name, bytes, v8_kinds, COUNT(v8_kinds));
}

static struct tier_mark v8_mark(const char *name, size_t bytes)
{
    size_t at = v8_kind_bytes(name, bytes);
    uint32_t length = at ? v8_mark_bytes(name + at, bytes - at) : 0;
    return (struct tier_mark){(uint32_t)at, length, length ? TIER_OF_V8 : TIER_IS_NONE};
}

/* The place of "-3" at the end of the BYTES at NAME; 0: there is none. */
static size_t number_at(const char *name, size_t bytes)
{
    size_t at = bytes;
    while (at && isdigit((unsigned char)name[at - 1]))
        at--;
    return at > 1 && at < bytes && name[at - 1] == '-' ? at - 1 : 0;
}

static struct tier_mark v8_wasm_mark(const char *name, size_t bytes)
{
    size_t kind = v8_kind_bytes(name, bytes);
    for (size_t i = 0; kind && i < COUNT(v8_wasm); i++) {
        size_t length = strlen(v8_wasm[i].end), at = bytes - length;
        if (bytes > kind + length && memcmp(name + at, v8_wasm[i].end, length) == 0 &&
            number_at(name, at) >= kind)
            return (struct tier_mark){(uint32_t)at, (uint32_t)length, TIER_OF_V8_WASM};
    }
    return (struct tier_mark){.form = TIER_IS_NONE};
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
    return begin_bytes(text, bytes, bracketed, COUNT(bracketed)) && is_word(text, bytes);
}

/* A mark after the name takes the space in front of it along. */
static struct tier_mark bracketed_mark(const char *name, size_t bytes)
{
    const char *open = bytes && name[bytes - 1] == ']' ? memrchr(name, '[', bytes) : NULL;
    if (!open || !is_bracketed_tier(open + 1, (size_t)(name + bytes - 1 - (open + 1))))
        return (struct tier_mark){.form = TIER_IS_NONE};
    const char *start = open > name && open[-1] == ' ' ? open - 1 : open;
    if (start == name)
        return (struct tier_mark){.form = TIER_IS_NONE};
    return (struct tier_mark){(uint32_t)(start - name), (uint32_t)(name + bytes - start),
                              TIER_BEHIND};
}

static struct tier_mark prefix_mark(const char *name, size_t bytes)
{
    size_t length = begin_bytes(name, bytes, prefixes, COUNT(prefixes));
    return (struct tier_mark){0, (uint32_t)length, length ? TIER_IN_FRONT : TIER_IS_NONE};
}

struct tier_mark tier_mark_of(const char *name, size_t bytes)
{
    struct tier_mark mark = v8_mark(name, bytes);
    if (!mark.bytes)
        mark = v8_wasm_mark(name, bytes);
    if (!mark.bytes)
        mark = prefix_mark(name, bytes);
    return mark.bytes ? mark : bracketed_mark(name, bytes);
}

bool tier_is_interpreter(const char *text)
{
    for (size_t i = 0; i < COUNT(interpreters); i++)
        if (strcmp(text, interpreters[i]) == 0)
            return true;
    return false;
}

size_t tier_mark_own_name(const char *name, size_t bytes, struct tier_mark mark, const char **start)
{
    size_t front = 0, end = bytes;
    switch (mark.form) {
    case TIER_IS_NONE:
        break;
    case TIER_IN_FRONT:
    case TIER_OF_V8:
        front = mark.at + (size_t)mark.bytes;
        break;
    case TIER_BEHIND:
        end = mark.at;
        break;
    case TIER_OF_V8_WASM:
        front = v8_kind_bytes(name, bytes);
        end = number_at(name, mark.at);
        break;
    }
    *start = name + front;
    return end - front;
}

void tier_mark_text(const char *name, struct tier_mark mark, char text[TIER_TEXT_BYTES])
{
    const char *start = name + mark.at, *end = start + mark.bytes;
    if (mark.form == TIER_OF_V8_WASM) {
        size_t i = 0;
        while (strncmp(start, v8_wasm[i].end, mark.bytes) != 0)
            i++;
        snprintf(text, TIER_TEXT_BYTES, "%s", v8_wasm[i].text);
        return;
    }
    if (mark.form == TIER_OF_V8) {
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

int tier_rank(const char *text)
{
    static const struct {
        const char *part; /* of the text; the first that fits */
        int rank;
    } ranks[] = {
        {"bytecode", 0},  {"LLInt", 0},        {"Interpreter", 0},
        {"Sparkplug", 1}, {"Baseline", 1},     {"QuickJitted", 1},
        {"MinOpt", 1},    {"Instrumented", 1}, {"OptimizedTier1", 3},
        {"Optimized", 2}, {"tier1", 1},        {"Maglev", 2},
        {"DFG", 2},       {"tier2", 3},        {"TurboFan", 3},
        {"FTL", 3},       {"Ion", 3},          {"tier3", 3}, /* HotSpot's: C1 that counts */
        {"tier4", 4}};
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++)
        if (strstr(text, ranks[i].part))
            return ranks[i].rank;
    return -1;
}
