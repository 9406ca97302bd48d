/* See short_name.h. */
#include "injector/profile/report/short_name.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { SHORT_ARGUMENTS = 12 };

static bool is_word(char letter)
{
    return isalnum((unsigned char)letter) || letter == '_' || letter == '$';
}

/* How many bytes the packages at AT have, "java.util." in front of a class: lower case, then a
 * capital; 0: there are none. */
static size_t package_bytes(const char *at)
{
    size_t bytes = 0;
    while (islower((unsigned char)at[bytes])) {
        size_t word = 0;
        while (is_word(at[bytes + word]))
            word++;
        if (at[bytes + word] != '.')
            break;
        bytes += word + 1;
    }
    return bytes && isupper((unsigned char)at[bytes]) ? bytes : 0;
}

/* "int java.util.HashMap.hash(java.lang.Object)": where the name begins, behind the return type;
 * NULL: it is no such name. */
static const char *java_name(const char *name)
{
    const char *open = strchr(name, '('), *begin = name;
    if (!open || open == name || name[strlen(name) - 1] != ')' || strstr(name, "::") ||
        strchr(name, '/'))
        return NULL;
    for (const char *at = name; at < open; at++)
        if (*at == ' ')
            begin = at + 1;
    return package_bytes(begin) ? begin : NULL;
}

static void put_java(const char *at, char *text)
{
    for (bool begins = true; *at; begins = !is_word(at[-1]) && at[-1] != '.') {
        if (begins)
            at += package_bytes(at);
        *text++ = *at++;
    }
    *text = '\0';
}

/* Behind the '>' that closes the '<' at OPEN, or NULL.  "->" closes nothing. */
static const char *arguments_end(const char *open)
{
    int depth = 0;
    for (const char *at = open; *at; at++) {
        depth += *at == '<';
        depth -= *at == '>' && at[-1] != '-';
        if (depth == 0)
            return at + 1;
    }
    return NULL;
}

static bool has_arguments(const char *name, const char *open)
{
    size_t before = (size_t)(open - name);
    if (!before || !is_word(open[-1]))
        return false;
    return before < 8 || strncmp(open - 8, "operator", 8) != 0;
}

static void put_arguments_short(const char *name, char *text)
{
    static const char dots[] = "<...>";
    for (const char *at = name; *at;) {
        const char *end = *at == '<' && has_arguments(name, at) ? arguments_end(at) : NULL;
        if (end && end - at > SHORT_ARGUMENTS) {
            memcpy(text, dots, sizeof dots - 1);
            text += sizeof dots - 1;
            at = end;
        } else {
            *text++ = *at++;
        }
    }
    *text = '\0';
}

const char *short_name(const char *name, char *text, size_t bytes)
{
    if (strlen(name) >= bytes)
        return name;
    const char *java = java_name(name);
    if (java)
        put_java(java, text);
    else
        put_arguments_short(name, text);
    return text;
}
