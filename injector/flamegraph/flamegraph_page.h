/* A flame graph as one page of HTML, which needs nothing else: data, style and script are in it. */
#ifndef PERFJIT_FLAMEGRAPH_PAGE_H
#define PERFJIT_FLAMEGRAPH_PAGE_H

#include "injector/profile/profile_totals.h"

#include <stdio.h>

struct flamegraph_request {
    const struct call_profile *profile;
    const struct profile_totals *totals;
    struct profile_choice choice;
    const char *title;
};

/* Write it to STREAM. */
void flamegraph_page_write(const struct flamegraph_request *request, FILE *stream);

#endif
