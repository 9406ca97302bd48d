/* How much of a run its JIT compilers took, as far as their names tell. */
#ifndef PERFJIT_COMPILE_TIME_H
#define PERFJIT_COMPILE_TIME_H

#include "injector/profile/call_profile.h"

/* The periods of the samples of PROFILE in whose stack, or thread, a compiler is; UINT64_MAX
 * without memory. */
uint64_t compile_time_of(const struct call_profile *profile);

#endif
