/* The machine that runs are measured on: what it is, and how fast it is now. */
#ifndef PERFJIT_MACHINE_FACTS_H
#define PERFJIT_MACHINE_FACTS_H

#include "injector/compare/kept_runs/bench_list.h"

/* Add to SIDE what of this machine changes how fast a program is.  Returns 0, or -1 without
 * memory. */
int machine_add_facts(struct bench_list *list, enum bench_side side);

/* How long a loop takes now that is always the same. */
uint64_t machine_loop_ns(void);

#endif
