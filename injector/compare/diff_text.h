/* The text output of perfjit diff. */
#ifndef PERFJIT_DIFF_TEXT_H
#define PERFJIT_DIFF_TEXT_H

#include "injector/compare/diff_report.h"

/* Put the first lines, the activities, and as many functions as the report has for people. */
void diff_text_put(FILE *stream, const struct diff_report *report);

#endif
