/* See frame_name.h. */
#include "injector/profile/frame_name.h"

#include "injector/log/script/v8_place.h"
#include "injector/text/affix.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* "name file:line:column", as in V8: the words behind the space are a place if they end in
 * numbers. */
static void take_place(struct frame_name *result)
{
    static const char none[] = "<unknown>"; /* as V8 writes in its dump's lines */
    struct v8_place place;
    if (!v8_place_of(result->name, result->name_bytes, &place))
        return;
    result->file = place.file_bytes ? place.file : none;
    result->file_bytes = place.file_bytes ? place.file_bytes : sizeof none - 1;
    result->line = place.line;
    result->column = place.column;
    result->name_bytes = place.name_bytes;
}

/* The length of a name as Python qualifies it, at the begin of the BYTES at TEXT: words, and words
 * in "<>", with dots between them; 0: there is none. */
static size_t python_name_bytes(const char *text, size_t bytes)
{
    size_t at = 0;
    for (;;) {
        size_t start = at;
        bool bracket = at < bytes && text[at] == '<';
        at += bracket;
        while (at < bytes && (isalnum((unsigned char)text[at]) || text[at] == '_' ||
                              (unsigned char)text[at] >= 0x80))
            at++;
        if (at == start + bracket || (bracket && (at == bytes || text[at++] != '>')))
            return 0;
        if (at == bytes || text[at] != '.')
            return at;
        at++;
    }
}

/* "py::name:file", as CPython writes it.  Other runtimes' names may be qualified by "py::", too:
 * there "::" follows, or nothing that is a file's name. */
static bool take_python(struct frame_name *result)
{
    static const char prefix[] = "py::";
    if (!text_begins(result->name, result->name_bytes, prefix))
        return false;
    const char *start = result->name + sizeof prefix - 1, *end = result->name + result->name_bytes;
    size_t bytes = python_name_bytes(start, (size_t)(end - start));
    const char *file = start + bytes + 1;
    if (!bytes || file >= end || file[-1] != ':' || *file == ':')
        return false;
    size_t file_bytes = (size_t)(end - file);
    bool is_made_up = *file == '<' && end[-1] == '>'; /* "<string>" */
    if (!is_made_up && !memchr(file, '/', file_bytes) && !memchr(file, '.', file_bytes))
        return false;
    result->name = start;
    result->name_bytes = bytes;
    result->file = file;
    result->file_bytes = file_bytes;
    return true;
}

static void take_tier(struct frame_name *result)
{
    const char *symbol = result->name;
    struct tier_mark mark = tier_mark_of(symbol, result->name_bytes);
    tier_mark_text(symbol, mark, result->tier);
    result->interpreted = tier_is_interpreter(result->tier);
    result->name_bytes = tier_mark_own_name(symbol, result->name_bytes, mark, &result->name);
    if (mark.form == TIER_IS_NONE || mark.form == TIER_OF_V8)
        take_place(result);
    if (mark.form == TIER_OF_V8_WASM) {
        result->number = result->name + result->name_bytes + 1;
        result->number_bytes = (size_t)(symbol + mark.at - result->number);
    }
}

struct frame_name frame_name_of_jit(const char *symbol, size_t bytes)
{
    static const char inlined[] = " (inlined)", anonymous[] = "(anonymous)";
    struct frame_name result = {.name = symbol, .name_bytes = bytes};
    if (text_ends(symbol, bytes, inlined)) {
        result.inlined = true;
        result.name_bytes -= sizeof inlined - 1;
    }
    if (!take_python(&result))
        take_tier(&result);
    if (text_begins(symbol, bytes, "Interpreter") && bytes == strlen("Interpreter"))
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
