/* What is said of two sets of runs: slower, faster, no change, can't tell; for the total, and for
 * each function. */
#ifndef PERFJIT_VERDICT_H
#define PERFJIT_VERDICT_H

#include "injector/compare/run_set.h"

enum verdict { VERDICT_SLOWER, VERDICT_FASTER, VERDICT_NO_CHANGE, VERDICT_UNKNOWN };

/* Fewer can't show a difference at 5 %: the least p of 3 against 3 is 0.10, of 5 pairs 0.063. */
enum { LEAST_RUNS = 4, LEAST_PAIRS = 6 };

struct compared_row {
    uint32_t name;    /* in the set's names; 0: the total */
    double base, new; /* means of the runs */
    double p;         /* 1: nothing was tested */
    enum verdict verdict;
};

struct verdicts {
    bool enough; /* runs, for any verdict */
    bool paired;
    double floor; /* a change by less than this share of the base's total is none */
    struct compared_row total;
    double least;              /* the share of the total that 4 of 5 such comparisons would show */
    struct compared_row *rows; /* the largest change first */
    size_t row_count;
};

/* Judge SET; PAIRED: its runs were in turns.  Returns 0, or -1 without memory.  Release with
 * verdicts_free in either case. */
int verdicts_find(struct verdicts *verdicts, const struct run_set *set, bool paired, double floor);

const char *verdict_name(enum verdict verdict);

void verdicts_free(struct verdicts *verdicts);

#endif
