/* See sample_order.h. */
#include "injector/check/census/sample_order.h"

#include "injector/arrays/array.h"
#include "injector/arrays/run_sort.h"

#include <stdlib.h>

/* By life, from SAMPLES to SORTED.  ENDS: by life, LIFE_COUNT zeros; where its samples end
 * afterwards. */
static void group(const struct census_sample *samples, struct census_sample *sorted, size_t count,
                  size_t *ends, size_t life_count)
{
    size_t before = 0;
    for (size_t i = 0; i < count; i++)
        ends[samples[i].life]++;
    for (size_t life = 0; life < life_count; life++) {
        size_t own = ends[life];
        ends[life] = before;
        before += own;
    }
    for (size_t i = 0; i < count; i++)
        sorted[ends[samples[i].life]++] = samples[i];
}

int sample_order(struct census_sample **samples, size_t count, size_t life_count)
{
    struct census_sample *sorted = malloc((count + 1) * sizeof *sorted);
    if (sorted)
        array_in_large_pages(sorted, count * sizeof *sorted);
    size_t *ends = calloc(life_count + 1, sizeof *ends);
    int result = sorted && ends ? 0 : -1;
    if (!result && count) {
        group(*samples, sorted, count, ends, life_count);
        for (size_t life = 0, start = 0; life < life_count; start = ends[life++])
            run_sort(sorted + start, *samples + start, ends[life] - start, sizeof *sorted);
        struct census_sample *before = *samples;
        *samples = sorted;
        sorted = before;
    }
    free(sorted);
    free(ends);
    return result;
}
