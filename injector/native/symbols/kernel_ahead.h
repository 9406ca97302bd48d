/* The kernel's list of symbols, read by a thread of its own while the samples are walked: the
 * kernel takes 40 ms to write it down. */
#ifndef PERFJIT_KERNEL_AHEAD_H
#define PERFJIT_KERNEL_AHEAD_H

#include "injector/native/symbols/kernel_symbols.h"

struct kernel_ahead;

/* Begin to read what is at PATH, which outlives it.  Returns NULL without memory.  Release with
 * kernel_ahead_free. */
struct kernel_ahead *kernel_ahead_begin(const char *path);

/* What was read, once it has been; NULL without memory. */
const struct kernel_symbols *kernel_ahead_wait(struct kernel_ahead *ahead);

/* AHEAD may be NULL. */
void kernel_ahead_free(struct kernel_ahead *ahead);

#endif
