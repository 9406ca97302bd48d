/* The recording that commands read when none is named. */
#ifndef PERFJIT_DEFAULT_FILE_H
#define PERFJIT_DEFAULT_FILE_H

#include "injector/findings/findings.h"

/* What help texts say of it. */
#define DEFAULT_FILES "perfjit.perf.data, perf.jit.data or perf.data, the first that is here"

/* GIVEN, or if that is NULL the first of these files that is in the current directory.  Returns
 * NULL, with the failure text set, if there is none. */
const char *default_file(const char *given, struct findings *findings);

#endif
