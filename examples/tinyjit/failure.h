/* What can go wrong while a script runs. */
#ifndef TINYJIT_FAILURE_H
#define TINYJIT_FAILURE_H

#include "examples/tinyjit/syntax.h"

enum failure { FAIL_STACK, FAIL_DIVISION, FAIL_SUBSCRIPT, FAIL_FUNCTION, FAIL_ARGUMENTS };

/* Say "SCRIPT:LINE:COLUMN: what happened" on stderr and end the program with status 1. */
_Noreturn void failure_exit(const struct program *program, enum failure failure,
                            struct position at);

#endif
