/* What all processors of the machine together have done so far, whoever they did it for. */
#ifndef PERFJIT_PROCESSOR_USE_H
#define PERFJIT_PROCESSOR_USE_H

#include <stdint.h>

struct processor_use {
    uint64_t time_ns;   /* when, on CLOCK_MONOTONIC */
    uint64_t busy_ns;   /* in steps of a tick */
    uint64_t stolen_ns; /* that a virtual machine wanted, and its host gave to others */
};

/* All but the time is 0 where /proc/stat can't be read. */
struct processor_use processor_use_now(void);

#endif
