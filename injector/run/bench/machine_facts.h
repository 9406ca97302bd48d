/* The machine that runs are measured on: its kind, and its present speed. */
#ifndef PERFJIT_MACHINE_FACTS_H
#define PERFJIT_MACHINE_FACTS_H

#include "injector/compare/kept_runs/bench_list.h"

/* Add to SIDE the facts of this machine that change a program's speed.  Returns 0, or -1 without
 * memory. */
int machine_add_facts(struct bench_list *list, enum bench_side side);

/* How long a loop takes now that is always the same. */
uint64_t machine_loop_ns(void);

#endif
