/* Which functions of both sides are one, where several have one name in one file: minified code,
 * and functions without a name.  These have a column.
 *
 * If one side has several of a name and most places are on both sides, the file is the same, and a
 * place is a function.  If the places differ, but there are as many on both sides, the file was
 * changed in front of them: they are one by their order.  Otherwise nothing says which is which,
 * and all of the name are one function. */
#ifndef PERFJIT_SAME_FUNCTIONS_H
#define PERFJIT_SAME_FUNCTIONS_H

#include "injector/compare/run_set.h"

/* Give the functions of SET their common places, when all runs have been added.  Functions without
 * a column stay as they are.  Returns 0, or -1 without memory. */
int same_functions_find(struct run_set *set);

#endif
