/* Addresses at which nothing ever was, in any process of a recording: for functions that have none
 * of their own. */
#ifndef PERFJIT_UNUSED_ADDRESSES_H
#define PERFJIT_UNUSED_ADDRESSES_H

#include "injector/log/code/jit_process.h"
#include "injector/recording/records.h"

/* The first of BYTES such addresses; 0: there are none. */
uint64_t unused_addresses_find(const struct jit_processes *processes, const struct records *records,
                               uint64_t bytes);

#endif
