/* perfjit diff as a flame graph.  Each stack is as wide as on the side that had more of it, so a
 * stack that is gone is still there.  Stacks that differ by more than noise are in colour, with all
 * that they call.
 */
#ifndef PERFJIT_DIFF_PAGE_H
#define PERFJIT_DIFF_PAGE_H

#include "injector/compare/diff_report.h"

/* Write it to STREAM.  Returns 0, or -1 without memory. */
int diff_page_write(FILE *stream, const struct diff_report *report);

#endif
