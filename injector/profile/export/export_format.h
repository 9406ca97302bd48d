/* The formats that perfjit export writes: a writer for each, which streams a profile. */
#ifndef PERFJIT_EXPORT_FORMAT_H
#define PERFJIT_EXPORT_FORMAT_H

#include "injector/profile/profile_totals.h"

#include <stdio.h>

struct export_request {
    const struct call_profile *profile;
    const struct profile_functions *functions;
    const struct profile_totals *totals; /* by the choice below */
    struct profile_choice choice;
    const char *title; /* the recording's name */
};

/* Write it to STREAM.  Returns 0, or -1 without memory; failures to write are STREAM's own
 * error. */
typedef int export_writer(const struct export_request *request, FILE *stream);

struct export_format {
    const char *name;
    const char *what;   /* opens it */
    const char *suffix; /* of its files */
    bool lines;         /* it can show the time of each line */
    export_writer *write;
};

/* All of them, up to one without a name. */
extern const struct export_format export_formats[];

/* The one of that NAME; NULL if there is none. */
const struct export_format *export_format_named(const char *name);

export_writer export_folded, export_pprof, export_firefox, export_speedscope, export_callgrind;

#endif
