/* The verdict about two sets of runs: slower, faster, no change, can't tell.  There is one for the
 * total, and one for each function, state, activity and stack. */
#ifndef PERFJIT_VERDICT_H
#define PERFJIT_VERDICT_H

#include "injector/compare/run_set.h"

/* The accepted probability of a verdict by mere chance, and of a gate that closes: half of what
 * chance does makes a program slower.  A gate stops work, and is asked again and again. */
#define VERDICT_LEVEL 0.05
#define GATE_LEVEL    0.02

enum verdict { VERDICT_SLOWER, VERDICT_FASTER, VERDICT_NO_CHANGE, VERDICT_UNKNOWN };

/* Fewer can't show a difference at 5 %: the least p of 3 against 3 is 0.10, of 5 pairs 0.063. */
enum { LEAST_RUNS = 4, LEAST_PAIRS = 6 };

struct compared_row {
    uint32_t number;  /* in its table; 0: the total */
    double base, new; /* means of the runs */
    double p;         /* of the largest |t| of all that was tested with it; 1: nothing was tested */
    double q;         /* the share of false ones among rows with this q or less */
    double least; /* the change that 4 of 5 such comparisons would show; 0: nothing was tested */
    enum verdict verdict;
};

struct verdict_rows {
    struct compared_row *items;
    size_t count;
};

/* The total by the middles of its runs (run_middle.h), which no run that is far off changes. */
struct middle_change {
    double base, new;
    double change; /* in pairs: the middle of the pairs' differences */
};

/* A run that is far off those of its side, and moves their mean by the floor or more. */
struct far_run {
    size_t number; /* in its side, from 1 on */
    bool is_new;
    double value;
};

enum { MOST_FAR_RUNS = 4 };

struct verdicts {
    bool enough; /* runs, for any verdict */
    bool paired;
    double floor;              /* a change by less than this share of the base's middle is none */
    struct compared_row total; /* its verdict is that of the middles */
    struct middle_change middle;
    double least_p; /* of so many runs */
    struct far_run far[MOST_FAR_RUNS];
    size_t far_count;
    /* Rows that have a value: the ones with a verdict first, then by size of the change.  BY_STACK
     * has all rows, by number, each with all that it calls. */
    struct verdict_rows tables[RUN_TABLES];
};

/* Judge SET; PAIRED: its runs were in turns.  Returns 0, or -1 without memory.  Release with
 * verdicts_free in either case. */
int verdicts_find(struct verdicts *verdicts, const struct run_set *set, bool paired, double floor);

const char *verdict_name(enum verdict verdict);

/* Whether the total is slower by at least SHARE of the base, by the middles, with a p of GATE_LEVEL
 * or of the least that so few runs can have. */
bool verdicts_regress(const struct verdicts *verdicts, double share);

static inline double compared_row_change(const struct compared_row *row)
{
    return row->new - row->base;
}

/* Whether ROW is slower or faster. */
static inline bool compared_row_differs(const struct compared_row *row)
{
    return row->verdict <= VERDICT_FASTER;
}

/* Whether ROW differs by more than noise, however little that is. */
static inline bool compared_row_is_sure(const struct compared_row *row)
{
    return row->q <= VERDICT_LEVEL;
}

void verdicts_free(struct verdicts *verdicts);

#endif
