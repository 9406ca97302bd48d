/* The span of one function's entries: offsets from its start, which may be negative. */
#ifndef PERFJIT_LINE_EXTENT_H
#define PERFJIT_LINE_EXTENT_H

#include <stdbool.h>
#include <stdint.h>

struct line_extent {
    int64_t lowest, highest;           /* lowest > highest: there is no entry */
    int64_t lowest_line, highest_line; /* of the entries that have a line */
};

static inline struct line_extent line_extent_of_nothing(void)
{
    return (struct line_extent){INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN};
}

static inline void line_extent_add(struct line_extent *extent, int64_t offset, bool has_line)
{
    extent->lowest = offset < extent->lowest ? offset : extent->lowest;
    extent->highest = offset > extent->highest ? offset : extent->highest;
    if (!has_line)
        return;
    extent->lowest_line = offset < extent->lowest_line ? offset : extent->lowest_line;
    extent->highest_line = offset > extent->highest_line ? offset : extent->highest_line;
}

#endif
