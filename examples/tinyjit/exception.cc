/* See exception.h. */
#include "examples/tinyjit/exception.h"

#include <cinttypes>
#include <cstdio>

void exception_throw(int64_t value)
{
    throw value;
}

void exception_catch(int64_t (*run)(struct runtime *runtime), struct runtime *runtime)
{
    try {
        run(runtime);
    } catch (int64_t value) {
        std::printf("caught %" PRId64 "\n", value);
    }
}
