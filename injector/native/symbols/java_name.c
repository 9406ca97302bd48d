/* Java, as class files write it: the class as a type, the method, the types of its parameters in
 * parentheses, and that of its result. */
#include "injector/native/symbols/mangled_name.h"
#include "injector/native/symbols/other_names.h"

#include <string.h>

enum { MOST_DIMENSIONS = 255 };

/* Put the text up to END, which is taken, with "." for "/". */
static void put_class(struct mangled_name *name, char end)
{
    const char *first = name->at;
    while (!name->failed && !mangled_take(name, end)) {
        char c = mangled_next(name);
        if (c == '\0' || c == '(' || c == ')' || c == ' ' || c == ';' || c == '[')
            mangled_fail(name);
        else
            mangled_put_bytes(name, c == '/' ? "." : &c, 1);
    }
    if (!name->failed && name->at - first < 2)
        mangled_fail(name);
}

static const char *basic_type(char tag)
{
    switch (tag) {
    case 'B':
        return "byte";
    case 'C':
        return "char";
    case 'D':
        return "double";
    case 'F':
        return "float";
    case 'I':
        return "int";
    case 'J':
        return "long";
    case 'S':
        return "short";
    case 'Z':
        return "boolean";
    default:
        return NULL;
    }
}

static void read_type(struct mangled_name *name)
{
    unsigned dimensions = 0;
    while (mangled_take(name, '[') && dimensions < MOST_DIMENSIONS)
        dimensions++;
    const char *basic = basic_type(mangled_peek(name));
    if (basic) {
        mangled_next(name);
        mangled_put(name, basic);
    } else if (mangled_take(name, 'L'))
        put_class(name, ';');
    else
        mangled_fail(name);
    for (unsigned i = 0; i < dimensions; i++)
        mangled_put(name, "[]");
}

static void read_result(struct mangled_name *name)
{
    name->silent = true;
    if (!mangled_take(name, 'V'))
        read_type(name);
    name->silent = false;
    if (mangled_peek(name))
        mangled_fail(name);
}

char *java_name(const char *symbol, size_t most)
{
    struct mangled_name name;
    mangled_begin(&name, symbol, strlen(symbol), most);
    if (!mangled_take(&name, 'L'))
        mangled_fail(&name);
    put_class(&name, ';');
    mangled_put(&name, ".");
    size_t bytes = strcspn(name.at, "()[;/ ");
    const char *method = name.failed ? NULL : mangled_part(&name, bytes);
    mangled_put_bytes(&name, method, method ? bytes : 0);
    if (bytes == 0 || !mangled_take(&name, '('))
        mangled_fail(&name);
    mangled_put(&name, "(");
    for (size_t i = 0; !name.failed && !mangled_take(&name, ')'); i++) {
        mangled_put(&name, i ? ", " : "");
        read_type(&name);
    }
    mangled_put(&name, ")");
    read_result(&name);
    return mangled_end(&name);
}
