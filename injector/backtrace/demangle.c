/* See demangle.h. */
#include "injector/backtrace/demangle.h"

#include <stdlib.h>
#include <string.h>

/* Of the C++ runtime: Itanium C++ ABI, 3.4. */
extern char *__cxa_demangle(const char *mangled, char *buffer, size_t *bytes, int *status);

/* Where the parameters at the end of NAME begin; NULL: it has none.  What stands behind them, as
 * "const" or "[clone .cold]", goes with them. */
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
    int status;
    if (symbol[0] != '_' || symbol[1] != 'Z')
        return NULL;
    char *name = __cxa_demangle(symbol, NULL, NULL, &status);
    if (!name || status) {
        free(name);
        return NULL;
    }
    char *end = parameters(name);
    if (end) {
        *end = '\0';
        char *start = behind_type(name);
        memmove(name, start, strlen(start) + 1);
    }
    return name;
}
