/* See run_ranks.h. */
#include "injector/compare/run_ranks.h"

#include <math.h>
#include <stdlib.h>

struct place {
    double value; /* by which it is ranked */
    size_t number;
};

static int compare(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    return a->value < b->value ? -1 : a->value > b->value;
}

/* Each of those as large has the mean of their places. */
static void share_places(double *ranks, const struct place *places, size_t count)
{
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && places[end].value == places[first].value; end++)
            ;
        for (size_t i = first; i < end; i++)
            ranks[places[i].number] = (double)(first + 1 + end) / 2;
    }
}

int run_ranks_find(double *ranks, const double *values, size_t count)
{
    struct place *places = calloc(count + 1, sizeof *places);
    if (!places)
        return -1;
    for (size_t i = 0; i < count; i++)
        places[i] = (struct place){values[i], i};
    qsort(places, count, sizeof *places, compare);
    share_places(ranks, places, count);
    free(places);
    return 0;
}

int run_ranks_of_pairs(double *ranks, const double *values, size_t pairs)
{
    const double *partners = values + pairs;
    double *sizes = calloc(pairs + 1, sizeof *sizes), middle = (double)pairs + 1;
    for (size_t i = 0; sizes && i < pairs; i++)
        sizes[i] = fabs(partners[i] - values[i]);
    int result = sizes ? run_ranks_find(ranks + pairs, sizes, pairs) : -1;
    for (size_t i = 0; !result && i < pairs; i++) {
        double sign = (partners[i] > values[i]) - (partners[i] < values[i]);
        ranks[i] = middle;
        ranks[pairs + i] = middle + sign * ranks[pairs + i];
    }
    free(sizes);
    return result;
}
