/* Addresses for unwind tables: where a process never had executable memory, near enough to the
 * code.
 *
 * perf's libunwind code reads an image's tables through the process's maps, so they need addresses
 * of their own, and a map record there must not hide anything.  Addresses are free if no mapping in
 * the profile, no JIT function and no table ever covered them, in the process or in the processes
 * that it inherited from.  If free addresses are too far away, anonymous memory that never was
 * executable is used.  Node 20 reserves 512 MiB for code in each of its threads, side by side.
 * From each gap the tables of one image after the other are taken, from its lower end upwards.
 */
#ifndef PERFJIT_TABLE_SPACE_H
#define PERFJIT_TABLE_SPACE_H

#include "injector/inject/layout/image_plan.h"

struct table_gap {
    uint64_t start; /* of the rest that is free */
    uint64_t end;
};

struct table_gaps {
    struct table_gap *items; /* by address */
    size_t count;
};

struct table_space {
    struct table_gaps unmapped;
    struct table_gaps reserved; /* anonymous memory, never executable */
};

/* Collect the gaps of PROCESS; PLAN has the images of those that it inherited from, PROCESSES is
 * where they all are.  Returns 0, or -1 without memory.  Release with table_space_free in either
 * case. */
int table_space_open(struct table_space *space, const struct jit_process *process,
                     const struct jit_process *processes, const struct image_plan *plan);

/* Take BYTES at the lowest free address from FROM on, at most up to LIMIT.  Returns the address, a
 * multiple of 16, or 0 if there is no room. */
uint64_t table_space_take(struct table_space *space, uint64_t from, uint64_t limit, uint64_t bytes);

void table_space_free(struct table_space *space);

#endif
