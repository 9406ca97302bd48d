/* Several claims of one file: whose it is; and whether it is of the life that has got it at all. */
#ifndef PERFJIT_DUMP_RIVALS_H
#define PERFJIT_DUMP_RIVALS_H

#include "injector/log/owner/dump_claim.h"

/* Refuse those found claims that have no right to their file.  Returns 0, or -1 with the failure
 * text set. */
int dump_rivals_settle(struct dump_claims *claims, struct findings *findings);

#endif
