/* The content that all forms of perfjit diff's output have in common. */
#ifndef PERFJIT_DIFF_REPORT_H
#define PERFJIT_DIFF_REPORT_H

#include "injector/compare/move.h"

#include <stdio.h>

struct diff_report {
    const struct run_set *set;
    struct verdicts verdicts;
    struct moves moves;
    const char *unit;  /* of values: "ns", "samples", or the event that they count */
    const char *title; /* what was compared */
    size_t most_rows;  /* of functions, where there are many for people to read */
};

/* Judge SET.  Returns 0, or -1 without memory.  Release with diff_report_free in either case. */
int diff_report_make(struct diff_report *report, const struct run_set *set, bool paired,
                     double floor);

/* Put the first lines: the verdict, and the smallest change that would have been seen.  With a
 * change of the total they say where it comes from, else which functions differ. */
void diff_report_put_head(FILE *stream, const struct diff_report *report);

/* Put VALUE, at least WIDTH wide. */
void diff_report_put_value(FILE *stream, const struct diff_report *report, int width, double value);

/* The same of a change, with its sign. */
void diff_report_put_change(FILE *stream, const struct diff_report *report, double change);

/* Put the change of ROW in percent, or that it is new, or vanished. */
void diff_report_put_share(FILE *stream, const struct compared_row *row);

/* String NUMBER of the set: of a function, a line or an instruction. */
const char *diff_report_string(const struct diff_report *report, uint32_t number);

void diff_report_free(struct diff_report *report);

#endif
