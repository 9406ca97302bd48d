/* Mangled names, of any language: what comes out is bounded, is text, and is soon there.  Names of
 * JIT code, with marks of tiers, also grow by their own length alone, and their parts lie in them.
 */
#include "injector/native/symbols/demangle.h"
#include "injector/log/code/jit_name.h"
#include "injector/native/symbols/native_symbols.h"
#include "injector/profile/frame_name.h"
#include "tests/fuzz/fuzz_target.h"

#include <string.h>

/* A small bound, so that names reach it. */
enum { MOST_BYTES = 3000 };

static void check_parts(const char *symbol, size_t size)
{
    const struct frame_name name = frame_name_of_jit(symbol, size);
    promise(name.name_bytes && (name.name < symbol || name.name >= symbol + size ||
                                name.name_bytes <= (size_t)(symbol + size - name.name)),
            "the name is in the symbol");
    promise(!name.number_bytes || name.number + name.number_bytes <= symbol + size,
            "the number is in the symbol");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *symbol = strndup((const char *)bytes, size);
    char *plain = demangle(symbol, MOST_BYTES), *again = demangle(symbol, DEMANGLED_MOST_BYTES);
    promise(!plain || (*plain && strlen(plain) <= MOST_BYTES), "a name is bounded");
    promise(!plain || (again && strcmp(plain, again) == 0), "a larger bound changes no name");
    promise(!plain || demangle_may(symbol, strlen(symbol)), "its begin says that it may be one");
    free(plain);
    free(again);
    plain = jit_name_demangled((const char *)bytes, size);
    promise(!plain || strlen(plain) <= 17 * size + 256, "a name of JIT code grows by its length");
    free(plain);
    plain = jit_name_shown((const char *)bytes, size);
    promise(plain != NULL, "there is something to show");
    free(plain);
    plain = native_name_shown(symbol);
    promise(plain && !*plain == !*symbol, "a symbol is shown by a name");
    free(plain);
    check_parts((const char *)bytes, size);
    free(symbol);
    return 0;
}
