/* Compares two means whose runs vary by different amounts (Welch), and makes the results of few and
 * of many runs comparable. */
#ifndef PERFJIT_WELCH_H
#define PERFJIT_WELCH_H

/* What the mean of one side may be off: the square of its standard error. */
struct welch_side {
    double square, freedom;
};

/* The standard error of the difference of two sides' means, and its degrees of freedom. */
struct welch {
    double error, freedom;
};

struct welch welch_of(struct welch_side a, struct welch_side b);

/* The normal deviate that is as unlikely as T of so many degrees of freedom (Wallace), and back. */
double welch_z(double t, double freedom);
double welch_t(double z, double freedom);

#endif
