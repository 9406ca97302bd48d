/* Line addresses that are 0x40 too high.
 *
 * Until 2020 perf did not add the offset of .text to the addresses of a line table (repaired by
 * "perf jit: Fix inaccurate DWARF line table"), so V8 and LLVM add it, 0x40, and still do.  Whether
 * a dump's producer did is visible in the dump as a whole: each entry of each function is at least
 * 0x40 after the function's start, none is more than 0x40 past its end, and
 *     - some entry with a line is past its function's end, or
 *     - of at least four functions three quarters have their first entry just at 0x40.
 * One function in fifty may differ.  A producer that adds nothing has lines in the first 0x40 bytes
 * of most functions, so a function whose first line happens to be at 0x40 is left as it is.
 */
#ifndef PERFJIT_LINE_BIAS_H
#define PERFJIT_LINE_BIAS_H

#include "injector/log/lines/line_extent.h"

#include <stddef.h>

enum { LINE_BIAS = 0x40 };

/* A summary of the functions of a dump. */
struct line_bias {
    size_t functions; /* that have entries */
    size_t contrary;  /* with an entry where a biased one can't be */
    size_t past_end;  /* with a line past the end */
    size_t exact;     /* whose first entry is just at the bias */
};

static inline void line_bias_add(struct line_bias *bias, const struct line_extent *extent,
                                 uint64_t size)
{
    if (extent->lowest > extent->highest)
        return;
    bias->functions++;
    bias->contrary += extent->lowest < LINE_BIAS || extent->highest > (int64_t)size + LINE_BIAS;
    bias->past_end += extent->highest_line > (int64_t)size;
    bias->exact += extent->lowest == LINE_BIAS;
}

/* By how much the addresses are too high: LINE_BIAS or 0. */
static inline uint64_t line_bias_of(const struct line_bias *bias)
{
    bool shape = bias->functions > 0 && bias->contrary * 50 <= bias->functions;
    bool usual = bias->functions >= 4 && bias->exact * 4 >= bias->functions * 3;
    return shape && (bias->past_end > 0 || usual) ? LINE_BIAS : 0;
}

#endif
