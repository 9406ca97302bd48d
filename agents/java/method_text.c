/* See method_text.h. */
#include "agents/java/method_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    char letter;
    const char *text;
} primitives[] = {{'B', "byte"}, {'C', "char"},  {'D', "double"},  {'F', "float"}, {'I', "int"},
                  {'J', "long"}, {'S', "short"}, {'Z', "boolean"}, {'V', "void"}};

/* How many of the BYTES at NAME stand in front of a hidden class's address: ".0x00007f..." or
 * "/0x00000008...". */
static size_t without_address(const char *name, size_t bytes)
{
    size_t at = bytes;
    while (at && isxdigit((unsigned char)name[at - 1]))
        at--;
    const bool hidden = at > 3 && at < bytes && name[at - 1] == 'x' && name[at - 2] == '0' &&
                        (name[at - 3] == '.' || name[at - 3] == '/');
    return hidden ? at - 3 : bytes;
}

/* The class's name in "Ljava/lang/Object;". */
static const char *class_name(const char *signature, size_t *bytes)
{
    const char *name = signature + (*signature == 'L'), *end = name + strcspn(name, ";");
    *bytes = without_address(name, (size_t)(end - name));
    return name;
}

static void put_class(FILE *out, const char *signature, bool is_short)
{
    size_t bytes;
    const char *name = class_name(signature, &bytes);
    const char *slash = is_short ? memrchr(name, '/', bytes) : NULL;
    for (const char *at = slash ? slash + 1 : name; at < name + bytes; at++)
        putc(*at == '/' ? '.' : *at, out);
}

/* One type of a descriptor at AT.  Returns the place behind it, or NULL if there is none. */
static const char *put_type(FILE *out, const char *at)
{
    size_t dimensions = strspn(at, "[");
    at += dimensions;
    const char *end = *at == 'L' ? strchr(at, ';') : NULL;
    if (end) {
        put_class(out, at, false);
    } else {
        size_t i = 0;
        while (i < sizeof primitives / sizeof *primitives && primitives[i].letter != *at)
            i++;
        if (i == sizeof primitives / sizeof *primitives)
            return NULL;
        fputs(primitives[i].text, out);
        end = at;
    }
    while (dimensions--)
        fputs("[]", out);
    return end + 1;
}

static bool put_parameters(FILE *out, const char *signature)
{
    const char *at = signature + 1;
    putc('(', out);
    while (at && *at && *at != ')') {
        if (at > signature + 1)
            fputs(", ", out);
        at = put_type(out, at);
    }
    putc(')', out);
    return at && *at == ')';
}

static bool put_method(FILE *out, const char *class_signature, const char *method,
                       const char *signature, bool is_short)
{
    const char *result = strrchr(signature, ')');
    if (*signature != '(' || !result)
        return false;
    if (!is_short) {
        if (!put_type(out, result + 1))
            return false;
        putc(' ', out);
    }
    put_class(out, class_signature, is_short);
    fprintf(out, ".%s", method);
    return is_short || put_parameters(out, signature);
}

char *method_text(const char *class_signature, const char *method, const char *signature,
                  bool is_short)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return NULL;
    bool good = put_method(out, class_signature, method, signature, is_short);
    if (ferror(out) | fclose(out) || !good) {
        free(text);
        return NULL;
    }
    return text;
}

char *source_path(const char *class_signature, const char *file)
{
    char *path;
    size_t bytes;
    const char *name = class_name(class_signature, &bytes);
    const char *slash = memrchr(name, '/', bytes);
    int folder = slash ? (int)(slash + 1 - name) : 0;
    return asprintf(&path, "%.*s%s", folder, name, file) < 0 ? NULL : path;
}
