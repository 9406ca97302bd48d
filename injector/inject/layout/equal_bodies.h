/* Bodies of one function that need only one place in a file.  They are equal in their bytes, in
 * their known lines and inlined calls, and in name. */
#ifndef PERFJIT_EQUAL_BODIES_H
#define PERFJIT_EQUAL_BODIES_H

#include "injector/inject/layout/name_groups.h"

/* The memory for comparing, used for one group after the other. */
struct equal_bodies {
    uint64_t *hashes; /* of the group's bodies */
    uint32_t *slots;  /* numbers in the group + 1, by hash; 0: free */
    size_t capacity, slot_count, slot_capacity;
    struct line_table left, right;
    const struct jit_function *in_left; /* whose lines LEFT has: many are compared with one */
};

/* For each body of GROUP, FIRST[i] receives the number in the group of the first one that is equal
 * to it.  Returns 0, or -1 without memory. */
int equal_bodies_find(struct equal_bodies *equal, const struct name_groups *groups,
                      const struct name_group *group, uint32_t *first);

void equal_bodies_free(struct equal_bodies *equal);

#endif
