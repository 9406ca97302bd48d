/* Constant folding: expressions whose value is known before the script runs. */
#ifndef TINYJIT_CONSTANT_H
#define TINYJIT_CONSTANT_H

#include "examples/tinyjit/syntax.h"

#include <stdbool.h>

/* Whether the value of NODE is known; it is put into *VALUE then.  A division by zero is not: it has to fail when
 * the script runs. */
bool constant_value(const struct node *node, int64_t *value);

#endif
