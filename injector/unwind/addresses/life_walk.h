/* Samples in an order in which address spaces can be played.  Each life goes by time: a parent up
 * to a fork, then the child, then the parent on.  A program that a process ran before it became
 * another one (exec) is like a parent. */
#ifndef PERFJIT_LIFE_WALK_H
#define PERFJIT_LIFE_WALK_H

#include "injector/unwind/addresses/address_space.h"

/* A sample whose stack is wanted; the time stands first, to sort by. */
struct walk_sample {
    uint64_t time_ns;
    uint64_t offset; /* of its record in the file */
    uint32_t life;
    uint32_t number; /* in file order, of those that ask */
};

struct life_walk {
    const struct space_source *source;
    struct walk_sample *samples; /* by life, and in a life by time */
    size_t count;
    void *context;
    /* Called for SAMPLE, with SPACE as it is then.  Returns 0, or -1 without memory. */
    int (*visit)(void *context, const struct walk_sample *sample,
                 const struct address_space *space);
};

/* Put the samples in order, a block of malloc that may be another one then, and visit all.  Returns
 * 0, or -1 without memory. */
int life_walk_go(struct life_walk *walk);

#endif
