/* C++ exceptions that compiled code is between: libjitunwind has the unwinder pass through it. */
#ifndef TINYJIT_EXCEPTION_H
#define TINYJIT_EXCEPTION_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct runtime;

/* Throw VALUE. */
void exception_throw(int64_t value);

/* Call RUN.  Returns whether it threw something: *VALUE. */
bool exception_catch(int64_t (*run)(struct runtime *runtime), struct runtime *runtime,
                     int64_t *value);

#ifdef __cplusplus
}
#endif

#endif
