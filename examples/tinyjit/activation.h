/* Activations: which code is on the stack. */
#ifndef TINYJIT_ACTIVATION_H
#define TINYJIT_ACTIVATION_H

#include "examples/tinyjit/runtime.h"

/* Walk the stack of compiled code from the call into C that was made with rsp = SP and rbp = FP, and mark each
 * code of RUNTIME as active or not.
 *
 * The walk goes by each code's list of calls, which works with and without frame pointers.  With
 * options.verify, each frame is unwound by its frame events as well, and tinyjit aborts if they disagree. */
void activation_mark(struct runtime *runtime, uint64_t sp, uint64_t fp);

#endif
