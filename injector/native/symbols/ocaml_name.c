/* OCaml: "caml", the path of the module with "__" for ".", the function and its number.  Operators
 * have their characters as "$" and two digits.  From 5.1 on there is a "." in front of the
 * function. */
#include "injector/native/symbols/mangled_name.h"
#include "injector/native/symbols/other_names.h"

#include <ctype.h>
#include <string.h>

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static void put_operator(struct mangled_name *name)
{
    const bool has_digits = name->end - name->at >= 2;
    int high = has_digits ? digit_of(name->at[0]) : -1, low = high < 0 ? -1 : digit_of(name->at[1]);
    if (low < 0 || high < 2 || (high == 7 && low == 15) || high > 7) {
        mangled_put(name, "$");
        return;
    }
    char c = (char)(high << 4 | low);
    mangled_put_bytes(name, &c, 1);
    name->at += 2;
}

char *ocaml_name(const char *symbol, size_t most)
{
    struct mangled_name name;
    mangled_begin(&name, symbol, strlen(symbol), most);
    if (!mangled_take_text(&name, "caml") || !isupper((unsigned char)mangled_peek(&name)) ||
        !(strstr(name.at, "__") || strchr(name.at, '.')))
        mangled_fail(&name);
    while (name.at < name.end)
        if (mangled_take_text(&name, "__"))
            mangled_put(&name, ".");
        else if (mangled_take(&name, '$'))
            put_operator(&name);
        else
            mangled_put_bytes(&name, name.at++, 1);
    return mangled_end(&name);
}
