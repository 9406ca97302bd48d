/* Memory for an array that grows at its end, in a range of addresses that is reserved for it.
 *
 * What is not used yet can't be written.  So in a host that called mlockall, or will call it, only
 * what is used becomes memory, and where memory is not overcommitted, only that is counted.
 */
#ifndef JITUNWIND_GROWN_MEMORY_H
#define JITUNWIND_GROWN_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GROWN_STEP_BYTES = 64 << 10 }; /* a multiple of the size of a page */

struct grown_memory {
    uint8_t *base;
    size_t bytes;  /* reserved; a multiple of GROWN_STEP_BYTES */
    size_t usable; /* at its begin */
};

/* BYTES, rounded up so that the next array may follow. */
size_t ju_grown_bytes(size_t bytes);

/* Reserve BYTES of addresses for one or more.  Returns NULL if there are not so many. */
void *ju_grown_reserve(size_t bytes);

/* Have at least the first BYTES be usable.  Returns false if there is no memory. */
bool ju_grown_reach(struct grown_memory *memory, size_t bytes);

#endif
