/* Whether the sides of a comparison are of one program at all. */
#ifndef PERFJIT_TWO_PROGRAMS_H
#define PERFJIT_TWO_PROGRAMS_H

#include "injector/compare/run_set.h"

/* Add a note to SET if not: no process of the one side has a name that one of the other has, or
 * hardly any time is in functions that both have.  Returns 0, or -1 without memory. */
int two_programs_tell(struct run_set *set);

#endif
