/* Replaces the runs' values by their ranks.  A run that met a neighbour on the machine is last, and
 * not further away than that.  Equal ones share their places. */
#ifndef PERFJIT_RUN_RANKS_H
#define PERFJIT_RUN_RANKS_H

#include <stddef.h>

/* Set RANKS[i] to the place of VALUES[i] among all COUNT, from 1 (Wilcoxon's ranks, of runs that
 * stand for themselves).  Returns 0, or -1 without memory. */
int run_ranks_find(double *ranks, const double *values, size_t count);

/* VALUES: PAIRS of one side, then their partners.  Set RANKS so that a partner's less the other's
 * is the place of their difference by its size, with its sign (Wilcoxon's signed ranks); all are
 * larger than 0.  Returns 0, or -1 without memory. */
int run_ranks_of_pairs(double *ranks, const double *values, size_t pairs);

#endif
