/* The kernel's list of symbols: what is made of any text ascends, has ends, and is found where it
 * is. */
#include "injector/native/symbols/kernel_symbols.h"

#include "tests/fuzz/fuzz_target.h"

#include <string.h>

static void check(const struct kernel_symbols *symbols, size_t i, size_t size)
{
    const struct kernel_symbol *symbol = &symbols->items[i];
    promise(i == 0 || symbol[-1].addr <= symbol->addr, "symbols ascend");
    promise(symbol->end > symbol->addr, "a symbol has an address");
    bool is_last = i + 1 == symbols->count || symbol[1].addr > symbol->addr;
    promise(!is_last || i + 1 == symbols->count || symbol->end <= symbol[1].addr,
            "symbols do not overlap");
    promise(!is_last || (kernel_symbols_at(symbols, symbol->addr) == symbol &&
                         kernel_symbols_at(symbols, symbol->end - 1) == symbol),
            "a symbol is found");
    promise(kernel_symbols_at(symbols, symbol->end) != symbol, "a symbol ends");
    promise(kernel_symbols_first(symbols, symbol) <= symbol, "a module begins");
    promise(symbol->name < size && symbol->module < size &&
                strlen(symbols->text + symbol->name) < size,
            "a name lies in the file");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct kernel_symbols symbols = {0};
    if (!memory_file_add(&symbols.file, bytes, size) && !kernel_symbols_parse(&symbols))
        for (size_t i = 0; i < symbols.count; i++)
            check(&symbols, i, size);
    kernel_symbols_free(&symbols);
    return 0;
}
