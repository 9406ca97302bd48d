/* See run_name.h. */
#include "injector/compare/run_name.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { LEAST_HEX = 6, LEAST_RANDOM = 8 };

/* What may stand in a pattern, beside text that is meant as it is.  For the first four, "*" is put
 * into the name. */
enum {
    DIGITS = '#', /* decimal, one or more, and no letter behind them */
    HEX = '@',    /* six digits or more, in small letters */
    SHORT = '~',  /* the same, one or more, and no other letter behind them */
    RANDOM = '%', /* eight letters and digits or more: by chance none of them is a digit */
    ANY = '*',    /* anything, also nothing */
    BEGIN = '^',  /* of the name */
    END = '!',    /* of the name */
};

/* A pattern that begins with a letter fits at the begin of a word alone. */
static const struct {
    const char *pattern;
    const char *source; /* who makes such names, and what it is that differs */
} rules[] = {
    /* An address of six digits or more: of a class, of code, of an object. */
    {"0x@", "HotSpot's hidden classes (LambdaForm$MH/0x0000000800c02400), and all others"},
    {"$$Lambda$#/0x@", "HotSpot to 20: the number of the lambda class, its address"},
    {"Lambda$#/0x@", "the same"},
    {"$$Lambda$#/#", "HotSpot 8: its number, its hash"},
    {"$$Lambda$#", "HotSpot to 20: in the order in which the calls were linked"},
    {"LambdaForm$MH/#", "HotSpot 8: a hash"},
    {"LambdaForm$DMH/#", "HotSpot 8"},
    {"LambdaForm$BMH/#", "HotSpot 8"},
    {"GeneratedMethodAccessor#", "HotSpot to 21: reflection, in the order of use"},
    {"GeneratedConstructorAccessor#", "HotSpot to 21"},
    {"GeneratedSerializationConstructorAccessor#", "HotSpot to 21"},
    {"jdk.proxy#.$Proxy#", "HotSpot from 16: java.lang.reflect.Proxy, in the order of use"},
    {"$Proxy#", "HotSpot: the same"},
    {"$$EnhancerByCGLIB$$@", "CGLIB: a hash"},
    {"$$FastClassByCGLIB$$@", "CGLIB"},
    {"$$EnhancerBySpringCGLIB$$@", "Spring"},
    {"$$FastClassBySpringCGLIB$$@", "Spring"},
    {"$ByteBuddy$%", "ByteBuddy: at random"},
    {"$HibernateProxy$%", "Hibernate, by ByteBuddy"},
    {"$MockitoMock$#", "Mockito: at random"},
    {"_$$_jvst~_~", "Javassist: a hash, a counter"},
    {"_$$_javassist_#", "Javassist: a counter"},
    {"Script#$_run_closure", "GroovyShell: the number of the script"},
    {"Script#.run", "GroovyShell"},
    {"$eval#", "Clojure: a counter of all that was compiled"},
    {"$fn__#", "Clojure"},
    {"$reify__#", "Clojure"},
    {"HotSpotCompilation-#", "Graal: the number of the compilation"},
    {"^julia_*_#!", "Julia: a counter of all that was compiled"},
    {"^jfptr_*_#!", "Julia"},
    {"^jlsys_*_#!", "Julia"},
    {"^japi1_*_#!", "Julia"},
    {"^japi3_*_#!", "Julia"},
    {"evalexpr_#_", "PostgreSQL: the number of the module in this backend"},
    {"deform_#_", "PostgreSQL"},
    {"17h@E", "Rust's legacy mangling: a hash of the build"},
    {"::h@!", "the same, demangled"},
    {".llvm.#", "clang's ThinLTO: a hash of the module"},
    {".lto_priv.#", "GCC's LTO: a counter of all such functions"},
    {".constprop.#", "GCC: a counter of the function's copies"},
    {".isra.#", "GCC"},
    {".part.#", "GCC"},
    {"lambda_method#", ".NET: Expression.Compile, a counter"},
    {"[abi:v#]", "Numba: a counter of what was compiled"},
    {"TRACE_#", "LuaJIT: the number of the trace"},
    {"TRACE #", "LuaJIT, by examples/adapters"},
    {"TRACE-#", "PHP: the number of the trace"},
    {"anonymous-#", "functions without a name that a runtime counts"},
    {"pid-#", "a process"},
    {"pid=#", "a process"},
    {"jitted-#-#.so", "perf inject's images: the process, a counter"},
    {"jit-#.dump", "a dump: the process"},
    {"perf-#.map", "a perf map: the process"},
};

static bool is_word(char letter)
{
    return isalnum((unsigned char)letter) || letter == '_';
}

static bool is_part(char letter, char sign)
{
    const bool is_hex = sign == HEX || sign == SHORT;
    return isdigit((unsigned char)letter) || (is_hex && letter >= 'a' && letter <= 'f') ||
           (sign == RANDOM && isalpha((unsigned char)letter));
}

/* How many bytes at TEXT are what SIGN stands for; 0: they are too few. */
static size_t part_bytes(const char *text, char sign)
{
    size_t bytes = 0;
    while (is_part(text[bytes], sign))
        bytes++;
    bool enough = sign == HEX      ? bytes >= LEAST_HEX
                  : sign == RANDOM ? bytes >= LEAST_RANDOM
                                   : bytes > 0 && !isalpha((unsigned char)text[bytes]);
    return enough ? bytes : 0;
}

/* How many bytes at TEXT fit PATTERN; 0: it does not.  A "*" takes as much as it can.  What TEXT is
 * in all runs is put at *TO, never more bytes than were compared; *TO is behind it then. */
static size_t fit(char **to, const char *text, const char *pattern)
{
    const char *at = text;
    for (; *pattern; pattern++) {
        size_t bytes = 1;
        if (*pattern == END)
            return *at ? 0 : (size_t)(at - text);
        if (*pattern == ANY) {
            const char *last = strrchr(at, pattern[1]);
            if (!last)
                return 0;
            while (at < last)
                *(*to)++ = *at++;
            continue;
        }
        if (strchr("#@~%", *pattern))
            bytes = part_bytes(at, *pattern);
        else if (*at != *pattern)
            bytes = 0;
        if (!bytes)
            return 0;
        *(*to)++ = *at == *pattern ? *at : '*';
        at += bytes;
    }
    return (size_t)(at - text);
}

/* The same, at a place of NAME. */
static size_t fit_rule(char **to, const char *name, const char *at, const char *pattern)
{
    if (*pattern == BEGIN)
        return at == name ? fit(to, at, pattern + 1) : 0;
    if (*at != *pattern || (isalpha((unsigned char)*pattern) && at > name && is_word(at[-1])))
        return 0;
    return fit(to, at, pattern);
}

/* A "$" where there may be no digit. */
static bool may_have_part(const char *name)
{
    return name[strcspn(name, "0123456789$")] != '\0';
}

size_t run_name_put(char *to, const char *name)
{
    char *behind = to;
    bool may_fit = may_have_part(name);
    for (const char *at = name; *at;) {
        size_t bytes = 0;
        for (size_t i = 0; may_fit && !bytes && i < sizeof rules / sizeof rules[0]; i++) {
            char *fitted = behind;
            bytes = fit_rule(&fitted, name, at, rules[i].pattern);
            if (bytes)
                behind = fitted;
        }
        if (!bytes)
            *behind++ = *at;
        at += bytes ? bytes : 1;
    }
    *behind = '\0';
    return (size_t)(behind - to);
}
