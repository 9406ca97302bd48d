/* See demangle.h. */
#include "injector/native/symbols/demangle.h"

#include "injector/native/symbols/mangled_name.h"
#include "injector/native/symbols/other_names.h"
#include "injector/native/symbols/rust_name.h"
#include "injector/text/affix.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

enum {
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
    struct mangled_name name; /* for its result alone: the runtime reads the symbol */
};

/* A name of 214 bytes can stand for 48 MB, and five more double that: each reference to a part
 * before (S1_, T_) writes that out again.  Leaving is the only way to end it. */
static void take_piece(const char *text, size_t bytes, void *to)
{
    struct demangling *run = to;
    mangled_put_bytes(&run->name, text, bytes);
    if (run->name.failed)
        longjmp(run->too_long, 1);
}

/* RUN is the caller's: what belongs to the function of setjmp is not known behind a longjmp. */
static void run_demangler(struct demangling *run, const char *symbol)
{
    if (setjmp(run->too_long) || __gcclibcxx_demangle_callback(symbol, take_piece, run))
        mangled_fail(&run->name);
}

static char *demangle_bounded(const char *symbol, size_t most)
{
    struct demangling run;
    mangled_begin(&run.name, symbol, strlen(symbol), most);
    run_demangler(&run, symbol);
    return mangled_end(&run.name);
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

static char *demangle_whole(const char *symbol, size_t most)
{
    int status;
    if (__gcclibcxx_demangle_callback)
        return demangle_bounded(symbol, most);
    if (count_references(symbol) > MOST_REFERENCES || strlen(symbol) > MOST_UNBOUNDED)
        return NULL;
    char *name = __cxa_demangle(symbol, NULL, NULL, &status);
    if (name && status == 0 && strlen(name) <= most)
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
        if (*at == ' ' && depth == 0 && at[1])
            start = at + 1;
    }
    return start;
}

/* Whether the demangler says in words what SYMBOL is of another: "virtual thunk to a::f()". */
static bool is_special(const char *symbol)
{
    return symbol[2] == 'T' || symbol[2] == 'G';
}

static char *cxx_name(const char *symbol, size_t most)
{
    char *name = demangle_whole(symbol, most);
    char *end = name ? is_special(symbol) ? strstr(name, " [clone ") : parameters(name) : NULL;
    if (end)
        *end = '\0';
    if (end && !is_special(symbol)) {
        char *start = behind_type(name);
        memmove(name, start, strlen(start) + 1);
    }
    return name;
}

/* How mangled names begin.  More than one language may have them. */
static const struct {
    const char *begin;
    char *(*read)(const char *symbol, size_t most);
} languages[] = {
    {"_R", rust_name},    {"_ZN", rust_name}, {"_Z", cxx_name},   {"_D", d_name},
    {"caml", ocaml_name}, {"$s", swift_name}, {"$S", swift_name}, {"_$s", swift_name},
    {"_$S", swift_name},  {"L", java_name},
};

bool demangle_may(const char *name, size_t bytes)
{
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++)
        if (text_begins(name, bytes, languages[i].begin))
            return true;
    return false;
}

char *demangle(const char *symbol, size_t most)
{
    char *name = NULL;
    size_t bytes = strlen(symbol);
    for (size_t i = 0; !name && i < sizeof languages / sizeof *languages; i++)
        if (text_begins(symbol, bytes, languages[i].begin))
            name = languages[i].read(symbol, most);
    return name;
}
