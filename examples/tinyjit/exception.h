/* C++ exceptions that compiled code is between: libjitunwind has the unwinder pass through it. */
#ifndef TINYJIT_EXCEPTION_H
#define TINYJIT_EXCEPTION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct runtime;

/* Throw VALUE. */
void exception_throw(int64_t value);

/* Call RUN, and say on stdout what it threw. */
void exception_catch(int64_t (*run)(struct runtime *runtime), struct runtime *runtime);

#ifdef __cplusplus
}
#endif

#endif
