/* The properties of a process's functions that decide on their places, by address.  The functions
 * themselves are far larger than a cache. */
#ifndef PERFJIT_PLACED_FUNCTIONS_H
#define PERFJIT_PLACED_FUNCTIONS_H

#include "injector/inject/layout/jit_image.h"

struct placed {
    uint64_t addr, end;
    uint32_t function;
    uint32_t generation;
    bool same_memory;
};

struct placed_functions {
    struct placed *items; /* the visible ones, by address; free it */
    size_t count;
};

#define NO_GAP UINT32_MAX

/* Sort the visible functions of TIMELINE, and make room in PLAN for the plan of its process, the
 * next one.  Each function is in no image yet, and its gap_after is set.  NULL without memory. */
struct process_plan *placed_functions_open(struct placed_functions *placed, struct image_plan *plan,
                                           const struct timeline *timeline);

#endif
