/* native_mix(x): C code that compiled code calls and that takes a while, so that a profile shows chains from C
 * through compiled code into C. */
#ifndef TINYJIT_NATIVE_MIX_H
#define TINYJIT_NATIVE_MIX_H

#include <stdint.h>

/* A number from 0 to 2^31 - 1 that depends on all bits of VALUE. */
int64_t native_mix(int64_t value);

#endif
