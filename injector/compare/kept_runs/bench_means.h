/* What the runs of two sides have on average, in a line. */
#ifndef PERFJIT_BENCH_MEANS_H
#define PERFJIT_BENCH_MEANS_H

#include "injector/compare/kept_runs/bench_balance.h"

/* The line, to be freed; NULL without memory. */
char *bench_means_line(const struct balance_side *base, const struct balance_side *new);

#endif
