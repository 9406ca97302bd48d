/* Mangled names, of any language: what comes out is bounded, is text, and is soon there.  Names of
 * JIT code, with marks of tiers, also grow by their own length alone. */
#include "injector/native/symbols/demangle.h"
#include "injector/log/code/jit_name.h"
#include "tests/fuzz/fuzz_target.h"

#include <string.h>

/* A small bound, so that names reach it. */
enum { MOST_BYTES = 3000 };

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
    free(symbol);
    return 0;
}
