/* The output of perfjit check --chains: where call chains end, and why. */
#ifndef PERFJIT_CHAIN_REPORT_H
#define PERFJIT_CHAIN_REPORT_H

#include "injector/check/census/chain_census.h"
#include "injector/check/findings_report.h"
#include "injector/unwind/stacks/user_stacks.h"

/* A member "chains" of the object that is open; text has all places if VERBOSE, else the worst.
 * Returns 0, or -1 without memory. */
int chain_report(struct report *report, const struct user_stacks *stacks,
                 const struct chain_census *census, bool verbose);

/* The same of a recording without user stacks. */
void chain_report_none(struct report *report);

#endif
