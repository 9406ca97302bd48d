/* The call chains of a recording of perf record --call-graph fp,defer, as they would be without
 * `defer`.
 *
 * Linux unwinds the user's stack when the thread goes back to the program, once for all samples
 * since it left that.  Until then their chains end in PERF_CONTEXT_USER_DEFERRED and a cookie.  The
 * rest stands in a later record of type CALLCHAIN_DEFERRED (perf_format.h) of the same thread and
 * cookie, which may have been lost, may be there for each event, and may be in another processor's
 * buffer: so only its time is later, and not its place in the file. */
#ifndef PERFJIT_DEFERRED_CHAINS_H
#define PERFJIT_DEFERRED_CHAINS_H

#include "injector/recording/perf_data/perf_plain.h"

/* Whether an event of FILE defers its chains. */
bool deferred_chains_expected(const struct perf_file *file);

/* Make PLAIN of FILE: each chain is whole, but for those whose rest is missing, which are reported.
 * No attribute and no record tells of `defer` any more.  Damage ends the records, and is reported.
 * Returns 0, or -1 with the failure text set. */
int deferred_chains_join(struct perf_plain *plain, const struct perf_file *file,
                         struct findings *findings);

#endif
