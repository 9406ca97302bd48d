/* Two that wait for each other in turn, a tracer and what it steps through, need no second
 * processor: on two, each turn waits until the other one wakes up. */
#ifndef PERFJIT_TEST_ONE_PROCESSOR_H
#define PERFJIT_TEST_ONE_PROCESSOR_H

#include <sched.h>

/* From here on this thread, and whom it makes, run on the processor that it is on. */
static inline void stay_on_one_processor(void)
{
    cpu_set_t one;
    int here = sched_getcpu();
    if (here < 0)
        return;
    CPU_ZERO(&one);
    CPU_SET((size_t)here, &one);
    sched_setaffinity(0, sizeof one, &one);
}

#endif
