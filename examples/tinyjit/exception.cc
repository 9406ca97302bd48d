/* See exception.h. */
#include "examples/tinyjit/exception.h"

void exception_throw(int64_t value)
{
    throw value;
}

bool exception_catch(int64_t (*run)(struct runtime *runtime), struct runtime *runtime,
                     int64_t *value)
{
    try {
        run(runtime);
    } catch (int64_t thrown) {
        *value = thrown;
        return true;
    }
    return false;
}
