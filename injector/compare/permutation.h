/* Tests whether two sets of runs differ by more than the runs of one set do among each other.  All
 * functions are relabelled together.  Each function is compared with the largest of all in each
 * round.
 *
 * Runs are relabelled as wholes, never samples: the common causes of a run's samples (its heap, its
 * compiled code) stay in common.  The largest |z| of a round (Westfall and Young) keeps the chance
 * of any false row among all functions at the chosen level.
 *
 * z is Welch's t, made comparable over its degrees of freedom.  A t of one common deviation says
 * "differs" if the few runs of one side vary more than the many of the other. */
#ifndef PERFJIT_PERMUTATION_H
#define PERFJIT_PERMUTATION_H

#include <stdbool.h>
#include <stddef.h>

struct permutation_runs {
    const double *values; /* run by run, those of the base first: one for each function */
    size_t functions, base, new;
    bool paired; /* run I of the base was in turn with run I of the new ones: as many of both */
    bool middle; /* not paired: a function counts by the middle of its runs where that is far surer
                    than the mean */
};

/* For each function f, set P[f] to the share of labellings whose largest |z| is at least f's.  All
 * labellings are used if there are at most 10 000, else 10 000 by a fixed seed.  Set Q[f] to f's
 * q-value, at most 1.  Among the functions whose |z| is at least f's, it is the share that would be
 * there by chance, by the labellings.  *CRITICAL is set to the least |z| whose P is 5 % or less.
 * Returns 0, or -1 without memory. */
int permutation_test(double *p, double *q, double *critical, const struct permutation_runs *runs);

/* The least P that so many runs can have. */
double permutation_least_p(const struct permutation_runs *runs);

#endif
