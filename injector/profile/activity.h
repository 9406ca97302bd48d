/* The activities of a run when it is sampled: its own code, compiled or interpreted, or the
 * runtime's work for it.  Each sample is of one activity, so that these add up to the total. */
#ifndef PERFJIT_ACTIVITY_H
#define PERFJIT_ACTIVITY_H

#include "injector/profile/call_profile.h"

enum activity {
    ACTIVITY_JIT,
    ACTIVITY_INTERPRETER,
    ACTIVITY_COLLECTOR, /* of garbage */
    ACTIVITY_COMPILER,
    ACTIVITY_NATIVE,
    ACTIVITY_KERNEL,
    ACTIVITY_OTHER, /* code without a name, or samples without a stack */
    ACTIVITIES
};

/* The activity's name for people: "garbage collector". */
const char *activity_name(enum activity activity);

/* By node: whether a compiler or a collector is in the stack, as far as names tell; the innermost
 * of both counts. */
struct activity_map {
    uint8_t *of_node;   /* an enum activity: one of these two, or that of the node's own frame */
    uint8_t *of_thread; /* the same of threads that do nothing else; else ACTIVITIES */
};

/* Returns 0, or -1 without memory.  Release with activity_map_free in either case. */
int activity_map_make(struct activity_map *map, const struct call_profile *profile);

enum activity activity_of(const struct activity_map *map, const struct call_sample *sample);

void activity_map_free(struct activity_map *map);

#endif
