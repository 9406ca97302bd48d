/* The events' attributes in the output.
 *
 * perf refuses an attribute that is longer than it knows, even where all that is more is 0: perf
 * 7.2 writes 144 bytes, perf 6.1 takes 128 and perf 6.12 takes 136.  So zeros behind that are left
 * out.  The attributes become a shorter table in the place of the input's.
 */
#ifndef PERFJIT_ATTRIBUTES_H
#define PERFJIT_ATTRIBUTES_H

#include "injector/files/output_file.h"
#include "injector/recording/perf_data/perf_file.h"

/* Patch OUTPUT, which has FILE's header and attributes.  UNWOUND: its stacks have become chains.
 * Returns 0, or -1 with the failure text set. */
int attributes_patch(const struct perf_file *file, bool unwound, struct output_file *output,
                     struct findings *findings);

#endif
