/* Through which functions and files the call chains of a recording go, and where they end, for the
 * judgement of their unwind tables. */
#ifndef PERFJIT_CHAIN_CENSUS_H
#define PERFJIT_CHAIN_CENSUS_H

#include "injector/unwind/stacks/stack_walk.h"

/* A JIT function, or a file. */
struct chain_place {
    uint64_t chains;           /* that have a frame in it */
    uint64_t ends[CHAIN_ENDS]; /* those that end in it, but for whole ones */
    uint64_t first_addr;       /* the first early end, in the function or the file */
    uint64_t last_chain;       /* the number of the last one that was counted here */
};

struct chain_census {
    struct chain_place *functions; /* by number, see space_function; NULL: not yet begun */
    struct chain_place *files;     /* by number; the first is where nothing was mapped */
    size_t file_count;
    uint64_t chains;
    uint64_t ends[CHAIN_ENDS];
};

/* Count, in a struct chain_census, the chain that WALKER has walked: user_stacks' walked.  Returns
 * 0, or -1 without memory.  Release with chain_census_free in either case. */
int chain_census_add(void *census, const struct stack_walker *walker);

/* How many chains end in JIT functions by those functions' own tables, of SOURCE's. */
uint64_t chain_census_misled(const struct chain_census *census, const struct space_source *source);

void chain_census_free(struct chain_census *census);

#endif
