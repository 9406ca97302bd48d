/* See address_span.h. */
#include "injector/arrays/address_span.h"

#include "injector/arrays/bisect.h"
#include "injector/arrays/number_sort.h"

size_t address_spans_join(struct address_span *spans, size_t count)
{
    size_t joined = 0;
    number_sort(spans, count, sizeof *spans);
    for (size_t i = 0; i < count; i++) {
        struct address_span *last = joined ? &spans[joined - 1] : NULL;
        if (!last || spans[i].start > last->end)
            spans[joined++] = spans[i];
        else if (spans[i].end > last->end)
            last->end = spans[i].end;
    }
    return joined;
}

const struct address_span *address_spans_find(const struct address_span *spans, size_t count,
                                              uint64_t addr)
{
    size_t first;
    array_bisect(first, count, spans[first].end <= addr);
    return first < count ? &spans[first] : NULL;
}
