/* The middle of several runs: their mean without the fastest and the slowest fifth (of four runs
 * without the fastest and the slowest).  A run that is far off has no say in it. */
#ifndef PERFJIT_RUN_MIDDLE_H
#define PERFJIT_RUN_MIDDLE_H

#include "injector/compare/welch.h"

#include <stddef.h>

struct run_middle {
    double mean;
    struct welch_side side; /* of two runs or more that are kept */
};

/* Of COUNT values, the smallest first.  At least one. */
struct run_middle run_middle_of(const double *values, size_t count);

/* The same of values in any order, which are sorted. */
struct run_middle run_middle_sort(double *values, size_t count);

/* Sort COUNT VALUES, the smallest first. */
void run_values_sort(double *values, size_t count);

#endif
