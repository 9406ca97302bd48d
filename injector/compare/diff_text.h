/* What perfjit diff prints. */
#ifndef PERFJIT_DIFF_TEXT_H
#define PERFJIT_DIFF_TEXT_H

#include "injector/compare/verdict.h"

#include <stdio.h>

/* Put the headline and at most MOST_ROWS functions.  COUNTS_NS: values are times. */
void diff_text_put(FILE *stream, const struct run_set *set, const struct verdicts *verdicts,
                   bool counts_ns, size_t most_rows);

#endif
