/* See frame_name.h. */
#include "injector/profile/frame_name.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char v8_bytecode[] = "bytecode";

static bool begins(const char *text, size_t bytes, const char *prefix)
{
    size_t length = strlen(prefix);
    return bytes >= length && memcmp(text, prefix, length) == 0;
}

static bool ends(const char *text, size_t bytes, const char *suffix)
{
    size_t length = strlen(suffix);
    return bytes >= length && memcmp(text + bytes - length, suffix, length) == 0;
}

/* Take ":NUMBER" off the end of the *BYTES at TEXT; 0: there is none. */
static uint32_t take_number(const char *text, size_t *bytes)
{
    size_t digits = 0;
    while (digits < *bytes && digits < 9 && text[*bytes - 1 - digits] >= '0' &&
           text[*bytes - 1 - digits] <= '9')
        digits++;
    if (digits == 0 || digits == *bytes || text[*bytes - 1 - digits] != ':')
        return 0;
    uint32_t value = (uint32_t)strtoul(text + *bytes - digits, NULL, 10);
    *bytes -= digits + 1;
    return value;
}

/* Whether a path from the root or a URL begins the BYTES at TEXT: "/", "node:", "C:". */
static bool begins_place(const char *text, size_t bytes)
{
    size_t at = 0;
    if (bytes && text[0] == '/')
        return true;
    while (at < bytes && isalpha((unsigned char)text[at]))
        at++;
    return at && at + 1 < bytes && text[at] == ':' && text[at + 1] != ' ';
}

/* The space in front of the place.  Names of functions may have spaces ("get x", a key of an
 * object), as paths may: the first one behind which a place clearly begins, else the first. */
static const char *find_place(const char *text, size_t bytes)
{
    const char *end = text + bytes, *first = memchr(text, ' ', bytes);
    for (const char *space = first; space;
         space = memchr(space + 1, ' ', (size_t)(end - space - 1)))
        if (begins_place(space + 1, (size_t)(end - space - 1)))
            return space;
    return first;
}

/* "name file:line:column", as in V8: the words behind the space are a place if they end in
 * numbers. */
static void take_place(struct frame_name *result)
{
    const char *space = find_place(result->name, result->name_bytes);
    if (!space)
        return;
    size_t bytes = result->name_bytes - (size_t)(space + 1 - result->name);
    uint32_t column = take_number(space + 1, &bytes);
    uint32_t line = column ? take_number(space + 1, &bytes) : 0;
    if (!column || bytes == 0)
        return;
    result->file = space + 1;
    result->file_bytes = bytes;
    result->line = line ? line : column;
    result->column = line ? column : 0;
    result->name_bytes = (size_t)(space - result->name);
}

static void take_v8(struct frame_name *result, struct tier_mark mark)
{
    result->name += mark.at + mark.bytes;
    result->name_bytes -= mark.at + mark.bytes;
    take_place(result);
}

/* "py::name:file". */
static void take_python(struct frame_name *result)
{
    const char *start = result->name + strlen("py::");
    size_t bytes = result->name_bytes - strlen("py::");
    const char *colon = memchr(start, ':', bytes);
    result->name = start;
    result->name_bytes = colon ? (size_t)(colon - start) : bytes;
    if (!colon)
        return;
    result->file = colon + 1;
    result->file_bytes = bytes - result->name_bytes - 1;
}

static void take_tier(struct frame_name *result, const char *symbol)
{
    struct tier_mark mark = tier_mark_of(symbol, result->name_bytes);
    if (!mark.bytes)
        return;
    tier_mark_text(symbol, mark, result->tier);
    result->interpreted = strcmp(result->tier, v8_bytecode) == 0 || strstr(result->tier, "LLInt") ||
                          begins(result->tier, strlen(result->tier), "Interpreter");
    if (tier_mark_is_v8(mark))
        take_v8(result, mark);
    else if (mark.at == 0) {
        result->name += mark.bytes;
        result->name_bytes -= mark.bytes;
    } else {
        result->name_bytes = mark.at;
    }
}

struct frame_name frame_name_of_jit(const char *symbol, size_t bytes)
{
    static const char inlined[] = " (inlined)", anonymous[] = "(anonymous)";
    struct frame_name result = {.name = symbol, .name_bytes = bytes};
    if (ends(symbol, bytes, inlined)) {
        result.inlined = true;
        result.name_bytes -= sizeof inlined - 1;
    }
    if (begins(symbol, bytes, "py::"))
        take_python(&result);
    else
        take_tier(&result, symbol);
    if (!result.tier[0] && !result.file && !begins(symbol, bytes, "py::"))
        take_place(&result);
    if (begins(symbol, bytes, "Interpreter") && bytes == strlen("Interpreter"))
        result.interpreted = true; /* HotSpot's */
    if (result.name_bytes == 0) {
        result.name = anonymous;
        result.name_bytes = sizeof anonymous - 1;
    }
    return result;
}

bool frame_name_is_interpreter(const char *symbol)
{
    static const char *const patterns[] = {"Builtins_Interpreter*",
                                           "Builtins_*Handler",
                                           "execute_ex",
                                           "ZEND_*_HANDLER",
                                           "_PyEval_EvalFrame*",
                                           "PyEval_EvalFrame*",
                                           "vm_exec_core",
                                           "rb_vm_exec",
                                           "mono_interp_exec_*",
                                           "interp_exec_method*",
                                           "luaV_execute",
                                           "lj_BC_*",
                                           "llint_*",
                                           "op_*_return_location",
                                           "process_main",
                                           "beam_jit_*",
                                           "JS_CallInternal",
                                           "hermes::vm::Interpreter*"};
    for (size_t i = 0; i < COUNT(patterns); i++)
        if (fnmatch(patterns[i], symbol, 0) == 0)
            return true;
    return false;
}
