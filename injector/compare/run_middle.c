/* See run_middle.h. */
#include "injector/compare/run_middle.h"

#include <stdlib.h>

static size_t cut_of(size_t count)
{
    return count < 5 ? count / 4 : count / 5;
}

static double square(double value)
{
    return value * value;
}

/* The spread is that of values of which those that were cut count as their neighbours do (Yuen). */
struct run_middle run_middle_of(const double *values, size_t count)
{
    size_t cut = cut_of(count), last = count - cut - 1;
    double kept = (double)(count - 2 * cut), sum = 0, squares = 0;
    for (size_t i = cut; i <= last; i++)
        sum += values[i];
    double mean = (sum + (double)cut * (values[cut] + values[last])) / (double)count;
    for (size_t i = cut; i <= last; i++)
        squares += square(values[i] - mean);
    squares += (double)cut * (square(values[cut] - mean) + square(values[last] - mean));
    return (struct run_middle){sum / kept, {squares / kept / (kept - 1), kept - 1}};
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

void run_values_sort(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
}

struct run_middle run_middle_sort(double *values, size_t count)
{
    run_values_sort(values, count);
    return run_middle_of(values, count);
}
