/* The pipeline from a recording and its dumps to a profile that names JIT code. */
#ifndef PERFJIT_INJECT_H
#define PERFJIT_INJECT_H

#include "injector/inject/inject_options.h"

/* Run inject with OPTIONS, and print the summary.  Returns the exit status: 1, with the failure
 * text set, if nothing was written. */
int inject_recording(const struct inject_options *options, struct findings *findings);

#endif
