/* Functions that lie near enough to each other to share an ELF file. */
#ifndef PERFJIT_NEIGHBOURHOOD_H
#define PERFJIT_NEIGHBOURHOOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Functions further apart than this do not share a file: a sparse file costs no disk, but tools
 * that read a whole section (objdump does) pay for its holes. */
#define NEIGHBOURHOOD_GAP_BYTES (UINT64_C(16) << 20)

/* All zeros: of none yet. */
struct neighbourhood {
    uint64_t start, reach; /* from the first one's start to the furthest one's end */
    size_t count;
    bool shared; /* two of them have addresses in common */
};

/* Take in a function at [ADDR, END), which starts no lower than those before it.  Returns false,
 * with THOSE as they were, if it is none of them; the first one always is. */
bool neighbourhood_take(struct neighbourhood *those, uint64_t addr, uint64_t end);

#endif
