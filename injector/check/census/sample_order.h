/* Samples by life, and in a life by time. */
#ifndef PERFJIT_SAMPLE_ORDER_H
#define PERFJIT_SAMPLE_ORDER_H

#include "injector/check/census/sample_states.h"

/* Put the COUNT *SAMPLES, a block of malloc, in order; it may be another one then.  Samples of one
 * time keep their order.  LIFE_COUNT: more than any life in them.  Returns 0, or -1 without
 * memory. */
int sample_order(struct census_sample **samples, size_t count, size_t life_count);

#endif
