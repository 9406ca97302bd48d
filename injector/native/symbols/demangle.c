/* See demangle.h. */
#include "injector/native/symbols/demangle.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_BYTES = 1 << 16,   /* of a name that people may have to read */
    MOST_REFERENCES = 10,   /* that a name may have where the runtime's demangler has no bound */
    MOST_UNBOUNDED = 1 << 9 /* bytes of such a name */
};

/* Two functions of the C++ runtime: Itanium C++ ABI, 3.4.  The second gives the name piece by
 * piece, takes no memory, and is in the static library alone: libstdc++.so has the first. */
extern char *__cxa_demangle(const char *mangled, char *buffer, size_t *bytes, int *status);
extern int __gcclibcxx_demangle_callback(const char *mangled,
                                         void (*take)(const char *text, size_t bytes, void *to),
                                         void *to) __attribute__((weak));

/* ---- The whole name ---- */

struct demangling {
    jmp_buf too_long;
    size_t bytes;
    char name[MOST_BYTES + 1];
};

/* A name of 214 bytes can stand for 48 MB, and five more double that: each reference to a part
 * before (S1_, T_) writes that out again.  Leaving is the only way to end it. */
static void take_piece(const char *text, size_t bytes, void *to)
{
    struct demangling *run = to;
    if (run->bytes + bytes > MOST_BYTES)
        longjmp(run->too_long, 1);
    memcpy(run->name + run->bytes, text, bytes);
    run->bytes += bytes;
}

static char *demangle_bounded(const char *symbol)
{
    struct demangling *run = malloc(sizeof *run);
    char *name = NULL;
    if (!run)
        return NULL;
    run->bytes = 0;
    if (setjmp(run->too_long) == 0 && __gcclibcxx_demangle_callback(symbol, take_piece, run) == 0 &&
        run->bytes)
        name = strndup(run->name, run->bytes);
    free(run);
    return name;
}

/* How many parts before this one SYMBOL may refer to, at most. */
static size_t count_references(const char *symbol)
{
    size_t count = 0;
    for (const char *at = symbol; *at; at++)
        count += (*at == 'S' || *at == 'T') &&
                 (at[1] == '_' || (at[1] >= '0' && at[1] <= '9') || (at[1] >= 'A' && at[1] <= 'Z'));
    return count;
}

static char *demangle_whole(const char *symbol)
{
    int status;
    if (__gcclibcxx_demangle_callback)
        return demangle_bounded(symbol);
    if (count_references(symbol) > MOST_REFERENCES || strlen(symbol) > MOST_UNBOUNDED)
        return NULL;
    char *name = __cxa_demangle(symbol, NULL, NULL, &status);
    if (name && status == 0)
        return name;
    free(name);
    return NULL;
}

/* ---- What is shown ---- */

/* The place where the parameters at the end of NAME begin; NULL: it has none.  Words behind them,
 * as "const" or "[clone .cold]", belong to the parameters. */
static char *parameters(char *name)
{
    char *close = strrchr(name, ')');
    int depth = 0;
    if (!close || strchr(close, '>'))
        return NULL;
    for (char *at = close; at >= name; at--) {
        depth += *at == ')' ? 1 : *at == '(' ? -1 : 0;
        if (depth == 0)
            return at > name ? at : NULL;
    }
    return NULL;
}

/* Behind a template's return type: the last space outside of brackets, unless it belongs to an
 * operator. */
static char *behind_type(char *name)
{
    char *start = name, *operator_at = strstr(name, "operator");
    int depth = 0;
    for (char *at = name; *at && (!operator_at || at < operator_at); at++) {
        depth += strchr("<(", *at) ? 1 : strchr(">)", *at) ? -1 : 0;
        if (*at == ' ' && depth == 0)
            start = at + 1;
    }
    return start;
}

char *demangle(const char *symbol)
{
    char *name = symbol[0] == '_' && symbol[1] == 'Z' ? demangle_whole(symbol) : NULL;
    char *end = name ? parameters(name) : NULL;
    if (end) {
        *end = '\0';
        char *start = behind_type(name);
        memmove(name, start, strlen(start) + 1);
    }
    return name;
}
