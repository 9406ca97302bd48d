/* The runs of benches, for perfjit diff: both sides of one, or the last sides of two. */
#ifndef PERFJIT_BENCH_SIDES_H
#define PERFJIT_BENCH_SIDES_H

#include "injector/compare/run_set.h"
#include "injector/findings/findings.h"

/* A file that a run is in. */
struct side_file {
    char *path; /* owned */
    bool is_new;
};

struct bench_sides {
    struct side_file *files; /* of each side, in the order in which they ran */
    size_t count, capacity;
    bool paired; /* as many of both, each next to the other's one */
};

/* List the runs of the COUNT DIRECTORIES, one or two, and note the differences between the machines
 * in SET.  Returns 0, or -1 with the failure text set.  Release with bench_sides_free in either
 * case. */
int bench_sides_read(struct bench_sides *sides, struct run_set *set, const char *const *directories,
                     size_t count, struct findings *findings);

void bench_sides_free(struct bench_sides *sides);

#endif
