/* Sets of addresses, as spans [start, end) that are sorted and apart from each other. */
#ifndef PERFJIT_ADDRESS_SPAN_H
#define PERFJIT_ADDRESS_SPAN_H

#include <stddef.h>
#include <stdint.h>

struct address_span {
    uint64_t start, end;
};

/* Sort the COUNT spans, and join those that overlap or touch.  Returns how many are left. */
size_t address_spans_join(struct address_span *spans, size_t count);

/* The first of joined spans that ends after ADDR, or NULL. */
const struct address_span *address_spans_find(const struct address_span *spans, size_t count,
                                              uint64_t addr);

#endif
