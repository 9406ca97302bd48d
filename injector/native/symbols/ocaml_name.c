/* OCaml: "caml", the path of the module with "__" for ".", the function and its number.  Operators
 * have their characters as "$" and two digits.  From 5.1 on there is a "." in front of the
 * function. */
#include "injector/native/symbols/mangled_name.h"
#include "injector/native/symbols/other_names.h"
#include "injector/text/hex_digit.h"

#include <ctype.h>
#include <string.h>

static void put_operator(struct mangled_name *name)
{
    const bool has_digits = name->end - name->at >= 2;
    int high = has_digits ? hex_digit(name->at[0]) : -1;
    int low = has_digits ? hex_digit(name->at[1]) : -1;
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
