/* See record_marks.h. */
#include "injector/recording/record_marks.h"

#include "injector/arrays/array.h"
#include "injector/recording/perf_data/perf_format.h"

#include <stdlib.h>

int record_marks_take(struct record_marks *marks, uint64_t every, const struct perf_record *record,
                      uint64_t time_ns)
{
    if (record->number % every == 0) {
        if (array_reserve(marks->items, marks->count, marks->capacity))
            return -1;
        marks->items[marks->count++] =
            (struct record_mark){.offset = record->offset, .number = record->number};
    }
    struct record_mark *mark = &marks->items[marks->count - 1];
    if (time_ns > mark->latest_ns)
        mark->latest_ns = time_ns;
    mark->traces |= record->type == PERF_RECORD_AUXTRACE;
    return 0;
}

void record_marks_skip(const struct record_marks *marks, struct perf_walk *walk, size_t *next,
                       uint64_t since_ns, uint64_t offset)
{
    const struct record_mark *mark = marks->items + *next;
    if (*next >= marks->count || mark->offset != walk->offset)
        return;
    for (; *next + 1 < marks->count; ++*next, mark++)
        if (mark->latest_ns >= since_ns || mark->traces || mark[1].offset > offset)
            break;
    walk->offset = mark->offset;
    walk->number = mark->number;
    ++*next;
}

void record_marks_free(struct record_marks *marks)
{
    free(marks->items);
    *marks = (struct record_marks){0};
}
