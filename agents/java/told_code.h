/* Which addresses of the code heaps the dump has names for, of code that is no method. */
#ifndef PERFJIT_TOLD_CODE_H
#define PERFJIT_TOLD_CODE_H

#include "agents/java/vm_structs.h"

struct told_range {
    uint64_t begin, end;
    unsigned walk; /* how many walks there were when it was told */
};

struct told_code {
    struct told_range *items; /* owned; sorted, and none overlaps another */
    size_t count, capacity;
};

/* Add RANGE.  What others have of it is no longer theirs.  False: no memory. */
bool told_code_add(struct told_code *told, const struct told_range *range);

/* The first part of [BEGIN, END) that nobody has, into *GAP.  False: there is none. */
bool told_code_gap(const struct told_code *told, uint64_t begin, uint64_t end,
                   struct told_range *gap);

/* Drop what was told before WALK, and lies in no blob, NOW or BEFORE: it is gone, and no event said
 * so. */
void told_code_drop(struct told_code *told, const struct vm_blobs *now,
                    const struct vm_blobs *before, unsigned walk);

void told_code_free(struct told_code *told);

#endif
