/* perfjit bench: two commands in turns, and a small profile of each of their runs. */
#ifndef PERFJIT_BENCH_H
#define PERFJIT_BENCH_H

#include "injector/compare/kept_runs/bench_list.h"
#include "injector/run/record/record_options.h"

struct bench_options {
    const char *commands[BENCH_SIDES]; /* NULL: that side is not run */
    const char *base_dir;              /* a bench whose last side is the base; or NULL */
    const char *output;
    size_t runs, warm_ups, repeats; /* repeats: of disturbed groups, at most */
    enum bench_order order;         /* turns, blocks or together */
    bool shows_output, quiet, verbose;
    struct record_options record; /* how each run is recorded */
};

/* Run and keep them, as OPTIONS say.  Returns the exit status. */
int bench_all(const struct bench_options *options);

#endif
