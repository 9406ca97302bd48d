/* The files that a process has mapped, libraries above all: where an image must not reach.
 *
 * libdw takes all from an image's base to its last function for one module.  If a library lies
 * between two of its functions, libdw finds the library no more, and perf 7 ends each chain there.
 */
#ifndef PERFJIT_FOREIGN_MAPS_H
#define PERFJIT_FOREIGN_MAPS_H

#include "injector/log/code/jit_process.h"

struct foreign_map {
    uint64_t start, end;
    uint64_t reach; /* the highest end of this one and those in front of it */
};

struct foreign_maps {
    struct foreign_map *items; /* by start */
    size_t count, capacity;
};

/* Collect the mappings of files that PROCESS, or one that it inherited from, ever had.  Returns 0,
 * or -1 without memory.  Release with foreign_maps_free in either case. */
int foreign_maps_open(struct foreign_maps *maps, const struct jit_process *process);

/* Whether one lies wholly in [START, END): one with code of the process's own in it does not count.
 */
bool foreign_maps_has_within(const struct foreign_maps *maps, uint64_t start, uint64_t end);

/* Whether one has addresses in [START, END). */
bool foreign_maps_reach_into(const struct foreign_maps *maps, uint64_t start, uint64_t end);

void foreign_maps_free(struct foreign_maps *maps);

#endif
