/* See jit_name.h. */
#include "injector/log/code/jit_name.h"

#include "injector/log/code/tier_mark.h"
#include "injector/native/symbols/demangle.h"
#include "injector/text/code_name.h"
#include "injector/text/printable_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A dump may have any number of names, each of which stands for a long one: a name may grow so many
 * times, and by so much. */
enum { MOST_TIMES = 16, MOST_BYTES = 256 };

/* The letters with which mangled names begin, and tiers in front of names. */
static const char first_letters[] = "_$cLJFESWDIB";

char *jit_name_demangled(const char *name, size_t bytes)
{
    const char *start;
    char *whole = NULL;
    if (!bytes || !name[0] || !strchr(first_letters, name[0]))
        return NULL;
    struct tier_mark mark = tier_mark_of(name, bytes);
    if (mark.form == TIER_OF_V8) /* a function of JavaScript */
        return NULL;
    size_t own = tier_mark_own_name(name, bytes, mark, &start);
    char *symbol = demangle_may(start, own) ? strndup(start, own) : NULL;
    char *plain = symbol ? demangle(symbol, MOST_TIMES * own + MOST_BYTES) : NULL;
    const char *behind = start + own, *end = name + bytes;
    if (plain && asprintf(&whole, "%.*s%s%.*s", (int)(start - name), name, plain,
                          (int)(end - behind), behind) < 0)
        whole = NULL;
    free(symbol);
    free(plain);
    return whole;
}

char *jit_name_shown(const char *name, size_t bytes)
{
    char *plain = jit_name_demangled(name, bytes);
    char *clean =
        plain ? code_name_printable(plain, strlen(plain)) : code_name_printable(name, bytes);
    char *shown = clean ? printable_copy(clean) : NULL;
    free(plain);
    free(clean);
    return shown;
}
