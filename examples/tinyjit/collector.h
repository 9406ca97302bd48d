/* The collector: frees code that was retired, and moves code together. */
#ifndef TINYJIT_COLLECTOR_H
#define TINYJIT_COLLECTOR_H

#include "examples/tinyjit/runtime.h"

/* Both go by what activation_mark found. */

/* Free what is retired and not active. */
void collector_free_retired(struct runtime *runtime);

/* Move functions that are not active into holes below them. */
void collector_compact(struct runtime *runtime);

/* Whether compaction is due: there are many holes, or compact_every says so. */
bool collector_should_compact(const struct runtime *runtime);

#endif
