/* perfjit diff as a flame graph: each stack as wide as on the side that had more of it, so that
 * what is gone is still there; in colour what differs by more than noise, with all that it calls.
 */
#ifndef PERFJIT_DIFF_PAGE_H
#define PERFJIT_DIFF_PAGE_H

#include "injector/compare/diff_report.h"

/* Write it to STREAM.  Returns 0, or -1 without memory. */
int diff_page_write(FILE *stream, const struct diff_report *report);

#endif
