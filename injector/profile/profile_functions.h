/* The functions of a profile.  Frames of one name and place are one function, of any tier, inlined
 * or not. */
#ifndef PERFJIT_PROFILE_FUNCTIONS_H
#define PERFJIT_PROFILE_FUNCTIONS_H

#include "injector/profile/call_profile.h"

struct profile_function {
    uint32_t name, module, file, line; /* as in struct call_frame */
};

struct profile_functions {
    struct profile_function *items;
    size_t count;
    uint32_t *of_frame; /* by frame */
    uint32_t *frames;   /* of the first function, then of the second, ... */
    uint32_t *first;    /* by function: where its own begin; and where all end */
};

/* Returns 0, or -1 without memory.  Release with profile_functions_free in either case. */
int profile_functions_find(struct profile_functions *functions, const struct call_profile *profile);

void profile_functions_free(struct profile_functions *functions);

#endif
