/* A flame graph as one page of HTML, which needs nothing else: data, style and script are in it. */
#ifndef PERFJIT_FLAMEGRAPH_PAGE_H
#define PERFJIT_FLAMEGRAPH_PAGE_H

#include "injector/profile/profile_totals.h"

#include <stdio.h>

/* The values of two sides for a stack with all that it calls, and enum verdict's number. */
struct flamegraph_difference {
    double base, new;
    int verdict;
};

/* The samples of two sides, for ranges of time. */
struct flamegraph_sample {
    uint32_t node;
    uint64_t since_ns; /* its run's first sample */
    uint64_t weight;
    bool is_new;
};

struct flamegraph_sides {
    const struct flamegraph_sample *samples;
    size_t count;
    size_t base_runs, new_runs;
};

struct flamegraph_request {
    const struct call_profile *profile;
    const struct profile_totals *totals;
    const struct profile_functions *functions; /* NULL: moments are not shown */
    struct profile_choice choice;
    const char *title;
    uint64_t wall_ns;  /* the clock's time at the recording's first sample; 0: it is not known */
    unsigned width;    /* of a picture, in pixels */
    const char *unit;  /* NULL: the event's */
    const char *lacks; /* what is missing in the recording, in lines; NULL: nothing */
    /* By node.  NULL: there is one profile. */
    const struct flamegraph_difference *difference;
    const struct flamegraph_sides *sides; /* of that; NULL: their samples have no times */
    /* Put the part below the graph, as HTML; NULL: there is none. */
    void (*put_tables)(FILE *stream, const void *context);
    const void *context;
};

/* Write it to STREAM.  Returns 0, or -1 without memory. */
int flamegraph_page_write(const struct flamegraph_request *request, FILE *stream);

#endif
