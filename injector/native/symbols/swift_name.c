#include "injector/native/symbols/other_names.h"
#include <stddef.h>
char *swift_name(const char *symbol, size_t most)
{
    (void)symbol;
    return NULL;
}
