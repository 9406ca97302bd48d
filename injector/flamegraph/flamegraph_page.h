/* A flame graph as one page of HTML, which needs nothing else: data, style and script are in it. */
#ifndef PERFJIT_FLAMEGRAPH_PAGE_H
#define PERFJIT_FLAMEGRAPH_PAGE_H

#include "injector/compare/verdict.h"

#include <stdio.h>

struct flamegraph_request {
    const struct call_profile *profile;
    const struct profile_totals *totals;
    struct profile_choice choice;
    const char *title;
    const char *unit; /* NULL: the event's */
    /* By node, with all that it calls: what two sides had of it.  NULL: there is one profile. */
    const struct compared_row *difference;
    /* Put what stands below the graph, as HTML; NULL: nothing does. */
    void (*put_tables)(FILE *stream, const void *context);
    const void *context;
};

/* Write it to STREAM. */
void flamegraph_page_write(const struct flamegraph_request *request, FILE *stream);

#endif
