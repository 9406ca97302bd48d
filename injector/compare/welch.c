/* See welch.h. */
#include "injector/compare/welch.h"

#include <math.h>

struct welch welch_of(struct welch_side a, struct welch_side b)
{
    double all = a.square + b.square;
    double parts = a.square * a.square / a.freedom + b.square * b.square / b.freedom;
    return (struct welch){sqrt(all), parts > 0 ? all * all / parts : a.freedom + b.freedom};
}

double welch_z(double t, double freedom)
{
    return (8 * freedom + 1) / (8 * freedom + 3) * sqrt(freedom * log1p(t * t / freedom));
}

double welch_t(double z, double freedom)
{
    double root = z * (8 * freedom + 3) / (8 * freedom + 1);
    return sqrt(freedom * expm1(root * root / freedom));
}
