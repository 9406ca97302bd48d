/* Whether two sides of runs had the same machine to themselves, and perf kept all of their samples.
 * If not, that may be the difference between the sides. */
#ifndef PERFJIT_BENCH_BALANCE_H
#define PERFJIT_BENCH_BALANCE_H

#include "injector/compare/kept_runs/bench_list.h"

struct balance_side {
    const struct bench_list *list;
    enum bench_side side;
};

/* Call TELL with a sentence for each thing that differs between BASE and NEW, of runs in ORDER,
 * and for lost samples.
 * Returns 0, or the first that TELL returns which is not 0. */
int bench_balance_tell(const struct balance_side *base, const struct balance_side *new,
                       enum bench_order order, int (*tell)(void *context, const char *text),
                       void *context);

#endif
