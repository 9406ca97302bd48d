/* All bodies of a recording, those of one function together. */
#ifndef PERFJIT_NAME_GROUPS_H
#define PERFJIT_NAME_GROUPS_H

#include "injector/inject/layout/jit_image.h"
#include "injector/log/code/tier_mark.h"

/* The unit of one row in perf. */
enum image_rows {
    ROWS_NAME,     /* all bodies of one name */
    ROWS_BODY,     /* each body: the layouts of image_plan.h */
    ROWS_FUNCTION, /* all bodies of one name without the mark of its tier (tier_mark.h) */
};

/* The bodies of one name, for one machine. */
struct name_group {
    uint64_t hash;         /* of the name */
    uint32_t first, count; /* of the bodies */
    uint32_t machine;      /* number, from 0 on */
    struct tier_mark cut;  /* from its first body's name */
};

struct name_groups {
    const struct jit_process *processes;
    struct image_body *bodies; /* by group; in a group by the time of their load; no offsets yet */
    bool are_given;            /* the bodies: somebody else frees them */
    size_t body_count, body_capacity;
    struct name_group *groups; /* in the order of their first bodies by process and address */
    size_t count, capacity;
    size_t machine_count;
};

/* Collect the visible functions of the COUNT PROCESSES by their TIMELINES, and make room for each
 * of these in PLAN.  Returns 0, or -1 without memory.  Release with name_groups_free in either
 * case. */
int name_groups_open(struct name_groups *groups, struct image_plan *plan,
                     const struct jit_process *processes, const struct timeline *timelines,
                     size_t count, enum image_rows rows);

void name_groups_free(struct name_groups *groups);

#endif
