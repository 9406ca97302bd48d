/* A profile with all that a table of perfjit report is made of. */
#ifndef PERFJIT_REPORT_VIEW_H
#define PERFJIT_REPORT_VIEW_H

#include "injector/profile/profile_totals.h"

#include <stdio.h>

struct report_view {
    const struct call_profile *profile;
    const struct profile_functions *functions;
    const struct profile_totals *totals;
    struct profile_choice choice;
    size_t most_rows; /* of a table */
    FILE *stream;
    bool full_names;
    bool by_total; /* functions: by what they took with all that they call */
    bool jit_only; /* functions: none that is native code, the kernel's or unknown alone */
};

/* VALUE of ALL, as a share: " 12.34%". */
void report_put_share(const struct report_view *view, uint64_t value);

/* VALUE, in the event's unit: seconds, or a count. */
void report_put_value(const struct report_view *view, uint64_t value);

/* The name of FUNCTION, and in brackets where it is: file:line, or the module. */
void report_put_function(const struct report_view *view, uint32_t function);

/* Whether DEOPT is of FUNCTION, in the time and threads that are shown. */
bool report_has_deopt(const struct report_view *view, const struct profile_deopt *deopt,
                      uint32_t function);

/* The unit's name, for the head of a column. */
const char *report_unit(const struct report_view *view);

/* The kinds and tiers of FUNCTION's frames, the one with most of the time first, at most two. */
void report_put_kinds(const struct report_view *view, uint32_t function, char *text, size_t bytes);

#endif
